// A histogram of durations with fixed buckets, as Prometheus counts them.
//
// A value; not thread-safe. Add() takes nanoseconds of CPU and no memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/base/time.h"

namespace troupe::head {

class Histogram {
 public:
  /// Upper bounds in seconds; beyond the last is +Inf.
  static constexpr std::array<double, 19> kBounds = {
      0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
      0.1,     0.25,   0.5,     1,      2.5,   5,      10,    60,   600};

  void Add(Duration length) {
    const double seconds = Seconds(length);
    std::size_t bucket = 0;
    while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
    ++counts_[bucket];
    sum_s_ += seconds;
  }

  /// How many were in this bucket and not in a lower one; the last is +Inf.
  const std::array<std::uint64_t, kBounds.size() + 1>& counts() const { return counts_; }
  double sum_s() const { return sum_s_; }

 private:
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};
  double sum_s_ = 0;
};

}  // namespace troupe::head
