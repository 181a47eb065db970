// Calls back when a descriptor becomes readable, or once when it becomes writable: pidfds,
// signalfds, datagram sockets, inotify, everything that is not a stream of frames.
//
// View: one io_context thread. Returns at once; callbacks run on the executor, never inside a call,
// and not after the destructor. on_readable is called again as long as the descriptor stays
// readable. The descriptor is borrowed: it must be non-blocking and outlive the watch, one watch
// each.
#pragma once

#include <functional>
#include <memory>

#include "runtime/async/task.h"
#include "runtime/base/status.h"

namespace troupe::async {

class FdWatch {
 public:
  FdWatch(const Executor& executor, int fd, std::function<void()> on_readable);
  ~FdWatch();
  FdWatch(const FdWatch&) = delete;
  FdWatch& operator=(const FdWatch&) = delete;

  /// Calls `on_writable` once, when the descriptor can be written to.
  void WhenWritable(std::function<void()> on_writable);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace troupe::async
