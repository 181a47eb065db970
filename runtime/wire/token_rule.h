// Certificates and sessions that end with the token that was shown for them, at the head and
// wherever else it is asked.
//
// Nodes stay: a token that many joined by may be revoked for the next one's sake. So do processes
// of launches: the head ends those that are to end.
#pragma once

#include "runtime/wire/messages.h"

namespace troupe::wire {

inline bool EndsWithItsToken(Role role) { return role == Role::kClient || role == Role::kObserver; }

}  // namespace troupe::wire
