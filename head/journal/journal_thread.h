// Group commit: the journal on a thread of its own.
//
// A batch is committed at once when the thread is idle; what comes while a commit is under way is the
// next batch. No timer. `on_durable(sequence, low_space)` and `on_failure` are called on the thread:
// they post to the loop. After a failure nothing is committed any more.
// The destructor finishes what was submitted, then joins.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "head/journal/journal.h"

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

 private:
  void Run();

  Journal& journal_;
  const OnDurable on_durable_;
  const OnFailure on_failure_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Row> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::head
