// Probe of a worker that lost its session: does it still listen? A refusal is a verdict, silence is
// not.
//
// Suspends for a second at most.
#pragma once

#include "runtime/async/task.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

/// True only when the node's own socket (on this host) or port refuses connections.
async::Task<bool> NobodyListens(wire::RegisterNode node);

}  // namespace troupe::head
