// A process that is killed at a time unless it is told of a later one: for an actor that may be
// made anew elsewhere while nobody can reach its worker, or its worker stands still (decision 19).
//
// View: one process; none of its threads is needed: the kernel's timer sends SIGKILL. It counts
// CLOCK_BOOTTIME, a suspended machine's sleep too. A forked child has no such timer. Until() does
// not block.
#pragma once

#include <ctime>

#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace troupe::os {

class SelfFence {
 public:
  SelfFence() = default;
  ~SelfFence();
  SelfFence(const SelfFence&) = delete;
  SelfFence& operator=(const SelfFence&) = delete;

  /// From now on this process is killed at `until`, and at no other time. kInternal: the kernel has
  /// no timer left.
  Status Until(Instant until);

 private:
  bool made_ = false;
  timer_t timer_{};
};

}  // namespace troupe::os
