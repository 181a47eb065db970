// Tells the head that this worker is there while its loop stands: one that waits for a disk, or is
// short of processors, sends no heartbeats, and is not lost for that (head/core/nodes/roster.h).
//
// View: one process; the owner's loop calls Beat() every `period`. A thread of its own watches for
// that: it touches no file. When the loop is late, it opens a session with the head and says
// WorkerHeldUp once a second until the loop goes round again. A process that is stopped (SIGSTOP)
// says nothing by this thread either.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "runtime/async/loop_thread.h"
#include "runtime/async/scope.h"
#include "runtime/base/mutex.h"
#include "runtime/base/time.h"
#include "runtime/net/open_session.h"
#include "runtime/wire/messages.h"

namespace troupe::worker {

class Pulse {
 public:
  /// `hello` is that of the worker's own session. `clock` must outlive the object.
  Pulse(const Clock& clock, Duration period, net::Address head, wire::Hello hello);
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  /// The loop goes round.
  void Beat();
  /// The node's certificate from now on.
  void Use(const net::Credentials& credentials);

 private:
  async::Task<void> Watch();
  async::Task<void> Tell();
  bool Late() const;
  net::OpenOptions Dialled();

  const Clock& clock_;
  const Duration period_;
  const net::Address head_;
  const wire::Hello hello_;
  std::atomic<Instant> beat_;
  Mutex mutex_;
  std::optional<net::Credentials> credentials_ ABSL_GUARDED_BY(mutex_);
  async::LoopThread thread_;
  std::shared_ptr<net::Connection> connection_;  // while the loop is late; of the thread
  async::Scope scope_;
};

}  // namespace troupe::worker
