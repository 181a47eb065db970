// Requests that may be sent again when the session broke before their answer came. Pure.
//
// Pure. A request that names itself (an id minted by whoever asks, a nonce, an epoch) is recognised
// by the head when it comes twice; a read does no harm. The few others must not be repeated:
// whether they took effect is not known, and their caller is told so (kUnknownOutcome).
#pragma once

#include "runtime/base/random.h"
#include "runtime/wire/messages.h"

namespace troupe::wire {

bool Repeatable(const Body& body);

/// Gives a request the id that makes it repeatable, where its caller left that out.
void NameRequest(Body& body, Random& random);

}  // namespace troupe::wire
