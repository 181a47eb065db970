// A thread that runs one io_context: TLS handshakes beside a reducer, the control client's I/O.
//
// View: one process. Signals are blocked in the thread, so that Ctrl-C reaches the main thread.
// Work crosses over by `post` of a value. An exception that escapes a handler ends the process: it
// is a broken invariant. Stop(), or the destructor, ends the loop and joins; not on the loop's
// thread. After fork() the child has no such thread: it must leave the object alone (see client/).
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <string>
#include <thread>

#include "runtime/async/task.h"
#include "runtime/base/mutex.h"

namespace troupe::async {

class LoopThread {
 public:
  /// `name` appears in top and gdb; at most 15 characters count.
  explicit LoopThread(const std::string& name);
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  /// Ends the thread; what was posted and has not run never will. Idempotent, any thread but its
  /// own.
  void Stop();

  asio::io_context& context() { return context_; }
  Executor executor() { return context_.get_executor(); }
  bool OnLoop() const { return std::this_thread::get_id() == thread_id_; }

 private:
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  Mutex stopping_;
  std::thread thread_ ABSL_GUARDED_BY(stopping_);
  std::thread::id thread_id_;
};

}  // namespace troupe::async
