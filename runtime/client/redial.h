// Reaching the head again after its connection was lost.
//
// View: one client; runs on its loop, suspends. Dials the same address and proves the same
// identity: by the certificate the first session brought, or over a Unix socket as the same user
// with the same subject, in the same cluster. Pauses grow from 20 ms to 1 s, with jitter.
#pragma once

#include <string>

#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/net/open_session.h"

namespace troupe::client {

/// How to come back as whoever joined by `first`: nothing is shown but what that session gave.
net::OpenOptions OptionsToReturn(const net::OpenOptions& first, const net::Joined& joined);

/// The new session. kConnection when `limit` is over, counted from this call, or when coming back
/// is refused for good; the text names `lost` (why the first one ended), the limit and the last
/// reason.
async::Task<StatusOr<net::OpenedSession>> Redial(net::OpenOptions options, Status lost,
                                                 Duration limit, const Clock& clock);

}  // namespace troupe::client
