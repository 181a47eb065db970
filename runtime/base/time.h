// Time as this project counts it.
//
// Instant is nanoseconds of a monotonic clock that also runs in suspend (CLOCK_BOOTTIME in
// production, virtual in the simulator); it is never compared between machines. WallTime is a
// separate, rare thing: microseconds since 1970, for records that people read.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe {

using Duration = std::chrono::nanoseconds;

struct MonotonicTag {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  using time_point = std::chrono::time_point<MonotonicTag, Duration>;
  static constexpr bool is_steady = true;
};
using Instant = MonotonicTag::time_point;

/// The seam for time. Production: async/real_clock.h. Simulator: tests/sim.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Monotonic, counts suspend. Never blocks.
  virtual Instant Now() const = 0;
  /// Microseconds since 1970, for records only: it may jump.
  virtual std::uint64_t WallTimeUs() const = 0;
};

inline double Seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline std::int64_t Millis(Duration d) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
}

}  // namespace troupe
