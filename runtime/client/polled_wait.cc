#include "runtime/client/polled_wait.h"

#include <algorithm>

namespace troupe::client {

Status PolledWait::Some(Mutex& mutex, CondVar& changed,
                        std::optional<WaitClock::time_point> until) {
  if (waited_ && poll_) {
    waited_ = false;
    mutex.Unlock();
    Status polled = poll_();
    mutex.Lock();
    return polled;
  }
  waited_ = true;
  const WaitClock::time_point now = WaitClock::now();
  if (until && now >= *until) return MakeError(ErrorCode::kTimeout, "timed out");
  if (!poll_ && !until) {
    changed.Wait(mutex);
    return {};
  }
  const WaitClock::time_point end = until.value_or(WaitClock::time_point::max());
  static_cast<void>(changed.WaitUntil(mutex, poll_ ? std::min(end, now + kPollSlice) : end));
  return {};
}

}  // namespace troupe::client
