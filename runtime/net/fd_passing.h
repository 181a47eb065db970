// File descriptors over a Unix socket (SCM_RIGHTS), with a payload of at least one byte.
//
// Blocking on a blocking socket, otherwise EAGAIN becomes kConnection "would block". Descriptors
// are received close-on-exec. On a SEQPACKET socket one call is one datagram; a datagram or control
// block that was cut off is an error and what came of it is closed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace troupe::net {

inline constexpr std::size_t kFdsPerMessageMax = 16;

/// Sends `payload` (not empty) with `fds`, which stay the caller's.
Status SendFds(int socket, std::string_view payload, const std::vector<int>& fds);

struct Received {
  std::string payload;  // empty: the peer closed
  std::vector<UniqueFd> fds;
};
/// The next payload, at most `payload_bytes_max` long, and what descriptors came along.
StatusOr<Received> RecvFds(int socket, std::size_t payload_bytes_max);

}  // namespace troupe::net
