#include "actors/net/unix_stream.h"

#include <absl/strings/str_format.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace troupe::actors {
namespace {

StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return MakeError(ErrorCode::kInvalid,
                     absl::StrFormat("the socket path '%s' has %u bytes, a Unix socket's may have "
                                     "1 to %u\n  use a shorter directory, e.g. /tmp",
                                     path, path.size(), sizeof address.sun_path - 1));
  }
  memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Status Failed(const char* what, const std::string& path, int error) {
  return MakeError(ErrorCode::kConnection,
                   absl::StrFormat("%s %s: %s", what, path, strerror(error)));
}

int NewSocket(int flags) { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0); }

}  // namespace

Status CheckPeerIsSameUser(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Failed("cannot tell who is at the other end of", "the socket", errno);
  }
  if (peer.uid != ::geteuid()) {
    return MakeError(ErrorCode::kConnection,
                     absl::StrFormat("the peer (pid %d) runs as user %u, this process as user %u",
                                     peer.pid, peer.uid, ::geteuid()));
  }
  return absl::OkStatus();
}

StatusOr<UnixStream> UnixStream::Connect(const std::string& path, Wait wait) {
  TROUPE_ASSIGN(const sockaddr_un address, AddressOf(path));
  const int fd = NewSocket(wait == Wait::kNo ? SOCK_NONBLOCK : 0);
  if (fd < 0) return Failed("cannot make a socket for", path, errno);
  UnixStream stream(fd);
  int result;
  do {
    result = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return Failed("cannot connect to", path, errno);
  TROUPE_TRY(CheckPeerIsSameUser(fd));
  return stream;
}

void UnixStream::Shutdown() { ::shutdown(fd_.get(), SHUT_RDWR); }

int UnixStream::PeerPid() const {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
  return peer.pid;
}

IoResult UnixStream::TryRead(char* into, std::size_t bytes) {
  const ssize_t n = ::recv(fd_.get(), into, bytes, MSG_DONTWAIT);
  if (n > 0) return {IoOutcome::kProgress, static_cast<std::size_t>(n), 0};
  if (n == 0) return {IoOutcome::kEnded, 0, 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
  return {IoOutcome::kEnded, 0, errno};
}

IoResult UnixStream::TryWrite(const char* from, std::size_t bytes) {
  const ssize_t n = ::send(fd_.get(), from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n >= 0) return {IoOutcome::kProgress, static_cast<std::size_t>(n), 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
  return {IoOutcome::kEnded, 0, errno};
}

StatusOr<GuardedFd> ListenUnix(const std::string& path) {
  TROUPE_ASSIGN(const sockaddr_un address, AddressOf(path));
  GuardedFd listener(NewSocket(SOCK_NONBLOCK));
  if (listener.get() < 0) return Failed("cannot make a socket for", path, errno);
  const auto* at = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(listener.get(), at, sizeof address) != 0) {
    if (errno != EADDRINUSE) return Failed("cannot listen at", path, errno);
    struct stat entry{};
    if (::lstat(path.c_str(), &entry) != 0 || !S_ISSOCK(entry.st_mode)) {
      return MakeError(
          ErrorCode::kAlreadyExists,
          absl::StrFormat("cannot listen at %s: a file that is no socket is there", path));
    }
    GuardedFd probe(NewSocket(SOCK_NONBLOCK));
    if (::connect(probe.get(), at, sizeof address) == 0 || errno != ECONNREFUSED) {
      return MakeError(ErrorCode::kAlreadyExists,
                       absl::StrFormat("another process listens at %s", path));
    }
    if (::unlink(path.c_str()) != 0 || ::bind(listener.get(), at, sizeof address) != 0) {
      return Failed("cannot listen at", path, errno);
    }
  }
  // Nobody can connect before listen(), so the mode is right from the first moment that counts.
  if (::chmod(path.c_str(), 0600) != 0) return Failed("cannot set the mode of", path, errno);
  if (::listen(listener.get(), 512) != 0) return Failed("cannot listen at", path, errno);
  return listener;
}

}  // namespace troupe::actors
