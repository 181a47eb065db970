// A non-blocking stream over a Unix socket, and how one is made. Nothing here blocks but Connect,
// which waits at most as long as the listener's queue is full.
//
// CallStream puts it, or TLS over a socket to another host, under a Channel and a CallerConnection.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "actors/core/call/io_result.h"
#include "actors/net/fork_guard.h"
#include "runtime/base/status.h"

namespace troupe::actors {

class UnixStream {
 public:
  UnixStream() = default;
  explicit UnixStream(int fd) : fd_(fd) {}
  explicit UnixStream(GuardedFd fd) : fd_(std::move(fd)) {}

  enum class Wait { kNo, kForTheQueue };
  /// Connects to a listening socket of the same user (SO_PEERCRED; anything else is refused).
  static StatusOr<UnixStream> Connect(const std::string& path, Wait wait = Wait::kForTheQueue);

  IoResult TryRead(char* into, std::size_t bytes);
  IoResult TryWrite(const char* from, std::size_t bytes);
  int fd() const { return fd_.get(); }
  /// Ends both directions; the descriptor stays until destruction. Any thread.
  void Shutdown();
  /// The process at the other end, 0 where the kernel does not tell.
  int PeerPid() const;

 private:
  GuardedFd fd_;
};

/// A listening socket with mode 0600 at `path` (at most 107 bytes). A socket file that nobody
/// listens on is replaced; one that answers is an error.
StatusOr<GuardedFd> ListenUnix(const std::string& path);
/// OK when the peer runs as this process's user.
Status CheckPeerIsSameUser(int fd);

}  // namespace troupe::actors
