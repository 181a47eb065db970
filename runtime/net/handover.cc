#include "runtime/net/handover.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "runtime/net/address.h"
#include "runtime/net/fd_passing.h"

namespace troupe::net {
namespace {

constexpr int kHandoversMax = 256;
constexpr char kGreeting[] = "caller";

Status Failed(const std::string& what, const std::string& path) {
  return MakeError(ErrorCode::kConnection, what + " " + path + ": " + std::strerror(errno));
}

StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() > kUnixPathBytesMax) {
    return MakeError(ErrorCode::kInvalid, "the socket path '" + path + "' has " +
                                              std::to_string(path.size()) +
                                              " bytes, a Unix socket's may have 1 to " +
                                              std::to_string(kUnixPathBytesMax));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

UniqueFd NewSocket() {
  return UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool SameUser(int fd) {
  ucred who{};
  socklen_t size = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

}  // namespace

StatusOr<UniqueFd> ListenForHandovers(const std::string& path) {
  TROUPE_ASSIGN(const sockaddr_un address, AddressOf(path));
  UniqueFd listener = NewSocket();
  if (!listener.valid()) return Failed("make a socket for", path);
  unlink(path.c_str());  // the call socket beside it, which is this process's, guards the name
  const auto* at = reinterpret_cast<const sockaddr*>(&address);
  // Nobody can connect before listen(), so the mode is right from the first moment that counts.
  if (bind(listener.get(), at, sizeof address) != 0 || chmod(path.c_str(), 0600) != 0 ||
      listen(listener.get(), kHandoversMax) != 0) {
    return Failed("listen at", path);
  }
  return listener;
}

Status HandOver(const std::string& path, int connection) {
  TROUPE_ASSIGN(const sockaddr_un address, AddressOf(path));
  const UniqueFd giver = NewSocket();
  if (!giver.valid()) return Failed("make a socket for", path);
  if (connect(giver.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Failed("hand a connection over at", path);
  }
  if (!SameUser(giver.get())) {
    return MakeError(ErrorCode::kConnection,
                     path + " belongs to another user: nothing is handed over");
  }
  return SendFds(giver.get(), kGreeting, {connection});
}

StatusOr<UniqueFd> AcceptHandover(int listener) {
  for (;;) {
    UniqueFd giver(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (giver.valid()) {
      if (SameUser(giver.get())) return giver;
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return UniqueFd();
    return MakeError(ErrorCode::kConnection,
                     std::string("take a connection over: ") + std::strerror(errno));
  }
}

StatusOr<UniqueFd> TakeHandover(int giver) {
  TROUPE_ASSIGN(Received received, RecvFds(giver, sizeof kGreeting));
  if (received.payload != kGreeting || received.fds.size() != 1) {
    return MakeError(ErrorCode::kInvalid, "what was handed over is not one connection");
  }
  return std::move(received.fds[0]);
}

}  // namespace troupe::net
