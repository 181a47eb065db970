// A thread that runs one io_context: TLS handshakes beside a reducer, the control client's I/O.
//
// View: one process. Signals are blocked in the thread, so that Ctrl-C reaches the main thread. Work
// crosses over by `post` of a value. An exception that escapes a handler ends the process: it is a
// broken invariant. The destructor stops the loop and joins; it must not run on the loop's thread.
// After fork() the child has no such thread: it must leave the object alone (see client/).
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <string>
#include <thread>

#include "runtime/async/task.h"

namespace troupe::async {

class LoopThread {
 public:
  /// `name` appears in top and gdb; at most 15 characters count.
  explicit LoopThread(const std::string& name);
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  asio::io_context& context() { return context_; }
  Executor executor() { return context_.get_executor(); }
  bool OnLoop() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace troupe::async
