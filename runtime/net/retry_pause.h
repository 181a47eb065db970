// The pauses between attempts to connect to one who turns callers away for a moment: 10 ms, then
// twice as long each time up to 320 ms, half of it by chance.
//
// View: one attempt of one client; on the loop it is awaited on.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "runtime/async/deadline.h"
#include "runtime/async/os_random.h"
#include "runtime/async/task.h"
#include "runtime/base/time.h"

namespace troupe::net {

class RetryPause {
 public:
  /// Returns true if there is time for another attempt after the pause.
  bool FitsBetween(Instant now, Instant end) const { return now + pause_ < end; }
  async::Task<void> Wait() {
    const Duration jitter(
        static_cast<std::int64_t>(random_.Next() % static_cast<std::uint64_t>(pause_.count())));
    const Duration wait = pause_ / 2 + jitter;
    pause_ = std::min<Duration>(pause_ * 2, std::chrono::milliseconds(320));
    co_await async::SleepFor(wait);
  }

 private:
  async::OsRandom random_;
  Duration pause_ = std::chrono::milliseconds(10);
};

}  // namespace troupe::net
