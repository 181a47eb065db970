#include "runtime/net/fd_passing.h"

#include <errno.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

namespace troupe::net {
namespace {

Status SocketError(const char* doing) {
  return MakeError(ErrorCode::kConnection, std::string(doing) + ": " + std::strerror(errno));
}

}  // namespace

Status SendFds(int socket, std::string_view payload, const std::vector<int>& fds) {
  if (payload.empty() || fds.size() > kFdsPerMessageMax) {
    return MakeError(ErrorCode::kInternal, "descriptors travel with a payload, at most 16 at once");
  }
  iovec part{const_cast<char*>(payload.data()), payload.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kFdsPerMessageMax * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return SocketError("pass descriptors");
  // The descriptors went with the first byte; a stream socket may take the rest later.
  for (std::size_t done = static_cast<std::size_t>(sent); done < payload.size();) {
    const ssize_t n = send(socket, payload.data() + done, payload.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SocketError("send what goes with descriptors");
    done += static_cast<std::size_t>(n);
  }
  return {};
}

StatusOr<Received> RecvFds(int socket, std::size_t payload_bytes_max) {
  Received received;
  received.payload.resize(payload_bytes_max);
  iovec part{received.payload.data(), payload_bytes_max};
  alignas(cmsghdr) char control[CMSG_SPACE(kFdsPerMessageMax * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = 0;
  do {
    n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return SocketError("receive descriptors");
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      received.fds.emplace_back(fd);
    }
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return MakeError(ErrorCode::kTooLarge, "a datagram or its descriptors were cut off: over " +
                                               std::to_string(payload_bytes_max) +
                                               " bytes or 16 descriptors");
  }
  received.payload.resize(static_cast<std::size_t>(n));
  return received;
}

}  // namespace troupe::net
