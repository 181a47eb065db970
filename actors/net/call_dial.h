// Reaching an actor's process on another host: connect to its worker's port, ask for the process by
// the TLS server name, check that its certificate is the actor's.
//
// Runs on the TlsLoop's thread and suspends there. Tried again, with growing pauses, until `limit`:
// a worker under load turns connections away. Errors: kConnection (with the last attempt's reason),
// kTimeout; kJoinRefused and kWrongCluster at once, for trying again would not help.
#pragma once

#include <functional>

#include "actors/net/call_stream.h"
#include "actors/net/call_tls.h"
#include "runtime/async/task.h"
#include "runtime/base/time.h"

namespace troupe::actors {

/// `wanted` says before each attempt whether anybody still waits for it; when not: kCancelled.
async::Task<StatusOr<CallStream>> DialActor(RemoteActor target, IdentitySource identity,
                                            Duration limit, std::function<bool()> wanted);

}  // namespace troupe::actors
