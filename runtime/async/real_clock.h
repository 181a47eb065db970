// The Clock of production: CLOCK_BOOTTIME, which also counts suspend, and CLOCK_REALTIME for
// records.
//
// View: one process. Thread-safe; never blocks. The simulator has its own Clock.
#pragma once

#include "runtime/base/time.h"

namespace troupe::async {

class RealClock final : public Clock {
 public:
  /// Returns a clock for whoever needs a reference; it lives as long as the process.
  static const RealClock& Shared();

  Instant Now() const override;
  std::uint64_t WallTimeUs() const override;
};

}  // namespace troupe::async
