// Probe of another node's worker: does it answer this one? For a head that does not hear it
// (decision 19).
//
// View: one process; runs on the loop it is awaited on. A connection alone proves nothing, since
// the kernel of a worker that stands still takes it: the answer is a session, by the node's own
// certificate over TLS.
#pragma once

#include <chrono>

#include "runtime/async/task.h"
#include "runtime/base/ids.h"
#include "runtime/base/time.h"
#include "runtime/net/open_session.h"

namespace troupe::worker {

inline constexpr std::chrono::seconds kPeerProbeLimit{2};

/// Dials as `options` say, kPeerProbeLimit at most, and expects `node` there. Never an error: what
/// cannot be dialled does not answer. `clock` must outlive the call.
async::Task<bool> PeerAnswers(NodeId node, net::OpenOptions options, const Clock& clock);

}  // namespace troupe::worker
