// Whether a worker that lost its session still listens: a refusal is a verdict, silence is not.
//
// Suspends for a second at most.
#pragma once

#include "runtime/async/task.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

/// True only when the node's own socket (same boot) or port refuses connections.
async::Task<bool> NobodyListens(wire::RegisterNode node);

/// The kernel's id of this boot.
std::string BootId();

}  // namespace troupe::head
