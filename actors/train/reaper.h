// Threads for calls that may block: one for each call, joined when it has returned.
//
// As many as there are groups in a call at once. A call that never returns keeps its thread until
// the process ends, which GroupRules sees to (GR4).
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "runtime/base/mutex.h"

namespace troupe::train {

class Reaper {
 public:
  Reaper() = default;
  /// Blocks until all calls have returned.
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// Runs it on a thread of its own; returns at once.
  void Start(std::function<void()> call);

 private:
  struct Running {
    std::thread thread;
    bool returned = false;
  };
  void JoinReturned();

  Mutex mutex_;
  std::list<Running> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::train
