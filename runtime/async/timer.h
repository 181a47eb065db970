// A timer that calls back at an Instant of a Clock; arming it again replaces the earlier time.
//
// View: one io_context thread. Returns at once. The callback runs on the executor, never inside
// ArmAt, and not after Cancel() or the destructor. A machine that slept wakes it late, never early.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "runtime/async/task.h"
#include "runtime/base/time.h"

namespace troupe::async {

class Timer {
 public:
  /// `clock` must outlive the Timer.
  Timer(Executor executor, const Clock& clock, std::function<void()> on_due);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void ArmAt(Instant due);
  void Cancel();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace troupe::async
