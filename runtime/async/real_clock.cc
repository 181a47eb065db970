#include "runtime/async/real_clock.h"

#include <time.h>

namespace troupe::async {

const RealClock& RealClock::Shared() {
  static const RealClock clock;
  return clock;
}

Instant RealClock::Now() const {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant(std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec));
}

std::uint64_t RealClock::WallTimeUs() const {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000u;
}

}  // namespace troupe::async
