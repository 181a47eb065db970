// Group commit: the journal on a thread of its own.
//
// A batch is committed at once when the thread is idle; what comes while a commit is under way is
// the next batch. `on_durable(sequence, low_space)` and `on_failure` are called on the thread: they
// post to the loop. After a failure nothing is committed any more. While the disk has no room the
// batch waits and is tried again every half second: there is no event for room on a disk. What is
// held back until it is durable waits with it. The destructor finishes what was submitted, then
// joins.
#pragma once

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "head/journal/journal.h"
#include "runtime/base/mutex.h"

namespace troupe::head {

class JournalThread {
 public:
  using OnDurable = std::function<void(std::uint64_t sequence, bool low_space)>;
  using OnFailure = std::function<void(Status)>;
  /// `journal` must outlive it and is used by nobody else meanwhile.
  JournalThread(Journal& journal, OnDurable on_durable, OnFailure on_failure);
  ~JournalThread();
  JournalThread(const JournalThread&) = delete;
  JournalThread& operator=(const JournalThread&) = delete;

  /// Returns at once; thread-safe.
  void Submit(std::vector<Row> rows);
  /// The state after `sequence`, whose rows were submitted before. One at a time: a later one
  /// replaces one that has not begun.
  void SubmitSnapshot(std::uint64_t sequence, std::vector<wire::Event> events);

 private:
  struct PendingSnapshot {
    std::uint64_t sequence = 0;
    std::vector<wire::Event> events;
  };
  void Run();
  enum class Woke { kWork, kEnd, kNeither };
  /// Waits for work or the end; while the disk is short of room half a second at the most, and then
  /// gives kNeither.
  Woke AwaitWork(std::vector<Row>* batch, std::optional<PendingSnapshot>* snapshot);
  /// False when it failed, or when the end came while it waited for room.
  bool Append(const std::vector<Row>& batch);
  void Take(const PendingSnapshot& snapshot);

  Journal& journal_;
  const OnDurable on_durable_;
  const OnFailure on_failure_;
  Mutex mutex_;
  CondVar wake_;  // work has come, or the end
  CondVar ends_;  // the end alone
  std::vector<Row> waiting_ ABSL_GUARDED_BY(mutex_);
  std::optional<PendingSnapshot> snapshot_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace troupe::head
