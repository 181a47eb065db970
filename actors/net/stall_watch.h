// Applies StallPolicy to one TCP connection: shuts it down when its other end has fallen silent, so
// that whoever reads it finds the end.
//
// Looked at by the TlsLoop's thread; End and lost from any. End comes before the descriptor is
// closed, and does nothing in a forked child, where the lock may be held by a thread that is not
// there.
#pragma once

#include <chrono>
#include <memory>

#include "actors/core/policy/stall_policy.h"
#include "actors/net/fork_guard.h"
#include "runtime/base/mutex.h"
#include "runtime/base/time.h"

namespace troupe::actors {

class StallWatch {
 public:
  static constexpr std::chrono::seconds kLookEvery{1};

  /// Begins to watch `fd`, and takes TCP_USER_TIMEOUT from it.
  static std::shared_ptr<StallWatch> Begin(int fd);
  void End();
  bool lost();

  /// False: it has ended, there is nothing to watch any more.
  bool Look(Instant now);

 private:
  explicit StallWatch(int fd) : fd_(fd) {}

  const std::uint32_t generation_ = ForkGuard::generation();
  Mutex mutex_;
  int fd_ ABSL_GUARDED_BY(mutex_);
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  StallPolicy rule_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::actors
