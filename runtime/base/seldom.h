// A line of the log that others can cause as often as they like, said at a bounded rate.
//
//   SE-1  Due answers once in kEvery at the most; the number it answers with is how many were left
//         out since the one before.
//
// View: one place that logs. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/base/time.h"

namespace troupe {

class Seldom {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(5);

  /// Given: say it, and how many were not said since the last one.
  std::optional<std::uint64_t> Due(Instant now) {
    const MutexLock lock(mutex_);
    if (said_ && now - *said_ < kEvery) {
      ++left_out_;
      return std::nullopt;
    }
    said_ = now;
    return std::exchange(left_out_, 0);
  }

 private:
  Mutex mutex_;
  std::optional<Instant> said_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe
