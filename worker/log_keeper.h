// Packs the log folders of ended launches and actors, many in one file, and removes them when they
// are too old, too large or too many.
//
// View: one node; on the worker's loop, what blocks on disk on the helper's. LogRetention decides.
// Folders of earlier lives of the worker are found at Start and count from their last change. A
// folder leaves by a rename to a name nothing reads, then its files go: a crash between the two is
// finished at the next start.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/async/task.h"
#include "runtime/base/time.h"
#include "worker/core/effects.h"
#include "worker/core/log_retention.h"
#include "worker/log_files.h"

namespace troupe::worker {

class LogKeeper {
 public:
  /// References must outlive the keeper; `executor` runs nothing once it is destroyed.
  LogKeeper(async::Executor executor, async::Executor helper, const Clock& clock, LogFiles& logs,
            RetentionLimits limits);

  /// Looks for what earlier lives left; returns at once.
  void Start();
  /// A process is about to write to `place`.
  void Began(ProcessId process, const LogPlace& place);
  /// A process writes no more (or never began).
  void Ended(ProcessId process);
  /// Removes what is overdue.
  void Tidy();

  const LogRetention& retention() const { return retention_; }

 private:
  void Found(std::vector<LogFolder> folders, std::vector<Pack> packs);
  void PackIfDue();
  void OnPacked(StatusOr<Pack> pack);
  void RemoveFiles(const std::string& folder);

  const async::Executor executor_;
  const async::Executor helper_;
  const Clock& clock_;
  LogFiles& logs_;
  LogRetention retention_;
  std::map<ProcessId, std::string> writing_;
  bool packs_known_ = false;
};

}  // namespace troupe::worker
