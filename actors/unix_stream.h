// A non-blocking stream over a Unix socket, and how one is made. Nothing here blocks but Connect,
// which waits at most as long as the listener's queue is full.
//
// This is the stream a Channel and a CallServer are built on, by static binding: another transport
// is another class with TryRead, TryWrite and fd.
#pragma once

#include <cstddef>
#include <string>

#include "actors/fork_guard.h"
#include "runtime/base/status.h"

namespace troupe::actors {

enum class IoOutcome { kProgress, kWouldBlock, kEnded };

struct IoResult {
  IoOutcome outcome = IoOutcome::kWouldBlock;
  std::size_t bytes = 0;
  int error = 0;  // of kEnded; 0 is an orderly end of the stream
};

class UnixStream {
 public:
  UnixStream() = default;
  explicit UnixStream(int fd) : fd_(fd) {}

  /// Connects to a listening socket of the same user (SO_PEERCRED; anything else is refused).
  static StatusOr<UnixStream> Connect(const std::string& path);

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
