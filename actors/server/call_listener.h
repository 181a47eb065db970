// The listener for callers: the Unix socket of this process, and the TLS acceptor for those of
// other hosts.
//
// With no descriptor left for a connection, callers wait in the socket's queue and the socket is
// not watched for a while: it would stay readable and whoever waits for it would spin. Whoever of
// another user connects is refused.
//
// View of one process; owned by the thread that serves, and used by it alone; takes no lock, never
// blocks. In a forked child it is the parent's, and inert.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/net/call_door.h"
#include "actors/net/call_stream.h"
#include "actors/net/fork_guard.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/net/shortage.h"

namespace troupe::actors {

class CallListener {
 public:
  /// Listens at `path`, with `identity` also for callers of other hosts, which the worker passes
  /// on. The socket is watched by `epoll_fd` as `event`; who came through the door makes `wake_fd`,
  /// an eventfd, readable. Both outlive it. Errors: kConnection.
  static StatusOr<std::unique_ptr<CallListener>> Open(std::string path, IdentitySource identity,
                                                      int epoll_fd, std::uint64_t event,
                                                      int wake_fd);
  /// Stops listening and removes the socket file.
  ~CallListener();
  CallListener(const CallListener&) = delete;
  CallListener& operator=(const CallListener&) = delete;

  const std::string& path() const { return path_; }
  /// Lets in who waits at the socket, until nobody does or no descriptor is left.
  void Accept(absl::FunctionRef<void(CallStream)> admit);
  /// Set: no descriptor was left, and Accept is to be called then.
  std::optional<Instant> paused_until() const { return paused_until_; }
  /// Returns the callers accepted over TLS since the last time.
  std::vector<CallStream> TakeFromDoor();
  /// Nobody comes through it any more. Its threads end.
  void CloseDoor() { door_.reset(); }

 private:
  CallListener(std::string path, GuardedFd socket, int epoll_fd, std::uint64_t event);
  bool Watch(int operation, bool watched);
  void Pause();
  void Resume();

  const std::string path_;
  const std::uint32_t generation_;
  const int epoll_fd_;
  const std::uint64_t event_;
  GuardedFd socket_;
  std::unique_ptr<CallDoor> door_;
  net::Shortage shortage_;  // a lack of descriptors
  std::optional<Instant> paused_until_;
};

}  // namespace troupe::actors
