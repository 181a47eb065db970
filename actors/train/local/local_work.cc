#include "actors/train/local/local_work.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace troupe::train {
namespace {

constexpr Duration kLongest =
    std::chrono::hours(24);  // longest single sleep: a clock's time may not overflow

}  // namespace

std::string SecondsText(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", Seconds(duration));
  return text;
}

bool LocalWork::Done() {
  MutexLock lock(mutex_);
  return ended_.has_value();
}

Status LocalWork::Wait(Duration most) {
  const Instant began = clock_.Now();
  MutexLock lock(mutex_);
  while (!ended_) {
    const Duration left = most - (clock_.Now() - began);
    if (left <= Duration::zero())
      return MakeError(ErrorCode::kTimeout, name_ + ": operation " + std::to_string(seq_) +
                                                " was not done after " + SecondsText(most) +
                                                ", counted from the wait's beginning; it goes on");
    changed_.WaitFor(mutex_, std::min(left, kLongest));
  }
  return *ended_;
}

void LocalWork::Then(std::function<void(const LocalWork&, const Status&)> then) {
  std::optional<Status> ended;
  {
    MutexLock lock(mutex_);
    ended = ended_;
    if (!ended) then_ = std::move(then);
  }
  if (ended) then(*this, *ended);
}

void LocalWork::Finish(const Status& status) {
  std::function<void(const LocalWork&, const Status&)> then;
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    ended_ = status;
    then = std::exchange(then_, nullptr);
    changed_.NotifyAll();
  }
  if (then) then(*this, status);
}

}  // namespace troupe::train
