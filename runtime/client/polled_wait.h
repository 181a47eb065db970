// A wait of one thread that runs a hook every 50 ms, so that Python's signal handlers run while
// C++ waits.
//
// Made on the waiting thread's stack, for one wait. The hook runs on that thread without the
// mutex; what is waited for is looked at before each of its runs, so that what has come is not
// lost to an error of the hook's.
//
//   PolledWait wait(poll);
//   while (!done_) TROUPE_TRY(wait.Some(mutex_, changed_, deadline));
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"

namespace troupe::client {

inline constexpr std::chrono::milliseconds kPollSlice{50};

/// Called by a waiting thread, without any lock held; an error ends the wait with it.
using PollHook = std::function<Status()>;
/// The clock that condition variables wait by.
using WaitClock = std::chrono::steady_clock;

class PolledWait {
 public:
  /// `poll` may be empty, and outlives this object.
  explicit PolledWait(const PollHook& poll) : poll_(poll) {}

  /// Waits for a while, or runs the hook; the caller then looks again whether what it waits for
  /// is there. Errors: kTimeout: `until` has passed (nullopt: there is no end); the hook's.
  Status Some(Mutex& mutex, CondVar& changed, std::optional<WaitClock::time_point> until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  const PollHook& poll_;
  bool waited_ = false;  // since the hook ran
};

}  // namespace troupe::client
