// Addresses as the kernel knows them: names resolved, sockets for them, who is at the other end.
//
// View: one process. Resolve suspends (a name server may be asked) and runs on the loop it is
// awaited on; the rest returns at once. Errors are kConnection, with the name and the system's
// reason.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <vector>

#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/address.h"

namespace troupe::net {

using Endpoint = async::asio::generic::stream_protocol::endpoint;

/// Resolves `address`; the result is never empty: a name may have several numbers.
async::Task<StatusOr<std::vector<Endpoint>>> Resolve(Address address);

/// A socket to connect to `to` with; non-blocking. Not Asio's open: a descriptor must never exist
/// without close-on-exec.
StatusOr<UniqueFd> OpenSocket(const Endpoint& to);

/// Number and port of a TCP socket's peer; the host is "an unknown address" when it is gone.
Address PeerAddress(int fd);

}  // namespace troupe::net
