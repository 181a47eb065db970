#include "runtime/os/self_fence.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace troupe::os {

SelfFence::~SelfFence() {
  if (made_) timer_delete(timer_);
}

Status SelfFence::Until(Instant until) {
  if (!made_) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    if (timer_create(CLOCK_BOOTTIME, &event, &timer_) != 0) {
      return MakeError(ErrorCode::kInternal, std::string("timer_create: ") + std::strerror(errno));
    }
    made_ = true;
  }
  // The kernel takes no time before the start of the machine, and zero for "never".
  const Duration since_boot = std::max(Duration(until.time_since_epoch()), Duration(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
  itimerspec when{};
  when.it_value.tv_sec = seconds.count();
  when.it_value.tv_nsec = (since_boot - seconds).count();
  if (timer_settime(timer_, TIMER_ABSTIME, &when, nullptr) != 0) {
    return MakeError(ErrorCode::kInternal, std::string("timer_settime: ") + std::strerror(errno));
  }
  return absl::OkStatus();
}

}  // namespace troupe::os
