// The clock of the call path: the monotonic clock of runtime/base/time.h, read directly, because
// one read per batch through a virtual seam would cost more than the read. Pure parts take `now`
// instead.
#pragma once

#include <time.h>

#include "runtime/base/time.h"

namespace troupe::actors {

inline Instant Now() {
  timespec t;
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return Instant(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

}  // namespace troupe::actors
