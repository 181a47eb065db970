// Operations of a communicator over memory, and their end.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/train/communicator.h"
#include "runtime/base/mutex.h"

namespace troupe::train {

/// "0.25 s".
std::string SecondsText(Duration duration);

class LocalWork final : public Work {
 public:
  LocalWork(const Clock& clock, std::string name, std::uint64_t seq)
      : clock_(clock), name_(std::move(name)), seq_(seq) {}

  bool Done() override;
  Status Wait(Duration most) override;
  std::uint64_t seq() const override { return seq_; }

  /// Calls `then` at the end, on the thread that ends it; at once where it has ended. Once.
  void Then(std::function<void(const LocalWork&, const Status&)> then);
  /// The sender of a message that was taken from anybody; -1 if there is none.
  int source() const { return source_; }
  void set_source(int rank) { source_ = rank; }
  /// Ends the work, after which no buffer of it is touched. The first call counts.
  void Finish(const Status& status);

 private:
  const Clock& clock_;
  const std::string name_;  // the work's group and rank
  const std::uint64_t seq_;
  std::atomic<int> source_{-1};
  Mutex mutex_;
  CondVar changed_;
  std::optional<Status> ended_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const LocalWork&, const Status&)> then_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::train
