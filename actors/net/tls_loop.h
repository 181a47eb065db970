// The thread that opens call connections to and from other hosts: dialling and TLS handshakes. Made
// by the first who needs it, once per process, never carried over a fork.
//
// Once a connection is established its bytes are read, written and encrypted by the threads that
// wait or serve; this one sleeps, but for a look a second at whether the other ends still answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/net/fork_guard.h"
#include "actors/net/stall_watch.h"
#include "runtime/async/loop_thread.h"
#include "runtime/async/scope.h"
#include "runtime/net/stream.h"

namespace troupe::actors {

class TlsLoop {
 public:
  /// This process's; after a fork the child gets a new one.
  static TlsLoop& Current();
  /// Ends the thread of this process's, if there is one: before the interpreter goes away.
  static void StopCurrent();

  async::Executor executor() { return thread_.executor(); }
  /// Starts a task; any thread.
  void Spawn(const char* name, async::Task<void> task);
  /// Looks at a connection once a second until it has ended; any thread.
  void Watch(std::shared_ptr<StallWatch> watch);

 private:
  TlsLoop();
  static async::Task<void> Tick(TlsLoop* loop);
  ~TlsLoop() = default;  // only one that lost a race ends: a loop lives as long as its process
  const std::uint32_t generation_;
  async::LoopThread thread_;
  async::Scope scope_;
  std::vector<std::shared_ptr<StallWatch>> watched_;  // the loop's
  bool ticking_ = false;                              // the loop's
};

/// A guarded socket as the loop's coroutines use it; they never own the descriptor.
class LoopSocket {
 public:
  static StatusOr<LoopSocket> Wrap(const async::Executor& executor, GuardedFd fd);
  LoopSocket(LoopSocket&&) noexcept = default;
  LoopSocket& operator=(LoopSocket&&) = delete;
  ~LoopSocket() { Forget(); }

  net::Socket& get() { return *socket_; }
  int fd() const { return fd_.get(); }
  /// The descriptor, for another thread.
  GuardedFd Release() {
    Forget();
    return std::move(fd_);
  }

 private:
  LoopSocket(GuardedFd fd, std::unique_ptr<net::Socket> socket)
      : fd_(std::move(fd)), socket_(std::move(socket)) {}
  void Forget();

  GuardedFd fd_;
  std::unique_ptr<net::Socket> socket_;
};

}  // namespace troupe::actors
