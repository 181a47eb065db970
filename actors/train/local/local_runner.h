// The thread on which a group's collectives run, one after the other, in the order of their starts.
//
// At most kStartedMax are outstanding; then Start waits. The thread ends with the runner, or by
// itself once the area is stopped and what was started has been told so.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "actors/train/local/collectives.h"
#include "actors/train/local/local_work.h"
#include "runtime/base/mutex.h"

namespace troupe::train {

inline constexpr std::size_t kStartedMax = 4096;

class LocalRunner {
 public:
  /// `ended` makes what a caller is told of what went wrong in a piece. The area must outlive it.
  LocalRunner(SharedArea& area, std::unique_ptr<Collectives> collectives,
              std::function<Status(const Status&)> ended);
  /// The area must be stopped, or nothing outstanding. Blocks until the thread has ended.
  ~LocalRunner();
  LocalRunner(const LocalRunner&) = delete;
  LocalRunner& operator=(const LocalRunner&) = delete;

  /// The operations run as one work. Any thread.
  void Start(std::shared_ptr<LocalWork> work, std::vector<Operation> operations);
  /// Blocks until nothing is outstanding.
  void Drain();

 private:
  struct Started {
    std::shared_ptr<LocalWork> work;
    std::vector<Operation> operations;
    std::vector<std::vector<std::size_t>> counts;  // counts that unequal all-to-alls refer to
  };
  void Run();

  SharedArea& area_;
  const std::function<Status(const Status&)> ended_;
  const std::unique_ptr<Collectives> collectives_;  // the thread's
  Mutex mutex_;
  CondVar changed_;
  std::deque<Started> started_ ABSL_GUARDED_BY(mutex_);  // the first one runs
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace troupe::train
