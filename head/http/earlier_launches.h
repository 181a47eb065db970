// Launches and jobs that have left the head's memory, as rows of the HTTP server's lists: read from
// the archive on the server's thread, so that the reducer is not asked.
//
// View: one head process; lives on the HTTP server's loop. A page looks at kScannedMax records at
// most, kRecordsPerSlice at a time, with everything else the loop has to do in between; one that
// ends sooner than its limit says where to go on.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "head/core/head_core.h"
#include "head/core/machine/archive_records.h"
#include "head/http/lists.h"
#include "head/http/pages.h"
#include "runtime/async/task.h"

namespace troupe::head {

/// The launches of jobs that were deleted, by their ids in hex.
struct DeletedJobs {
  std::set<std::string> launches;
};

/// Makes them of the head's state, some a call; for one view.
class DeletedJobsLister {
 public:
  explicit DeletedJobsLister(const State& state) : state_(state) {}
  /// True: the view is whole.
  bool operator()(DeletedJobs& view);

 private:
  const State& state_;
  ValueKey after_{kDeletedJobs, ""};
};

class EarlierLaunches {
 public:
  static constexpr std::size_t kScannedMax = 2000;
  static constexpr std::size_t kRecordsPerSlice = 100;
  /// Records that are looked at for an id that is cut to how it begins.
  static constexpr std::size_t kMatchesMax = 50;

  /// `read` may be null: there is no archive. `core` is asked for what never changes.
  EarlierLaunches(ReadArchive read, const HeadCore& core, const Clock& clock)
      : read_(std::move(read)), core_(core), clock_(clock) {}

  /// Behind the cursor, in the order of ids; one more than the page has room for.
  async::Task<StatusOr<Earlier>> Page(const Paging& paging);
  async::Task<StatusOr<Earlier>> JobsPage(const Paging& paging, const DeletedJobs& deleted);
  /// Returns launches whose ids begin so. `nodes` are the cluster's, for their names.
  StatusOr<Earlier> Beginning(const std::string& id, const std::vector<NodeRow>& nodes);
  StatusOr<Earlier> JobsBeginning(const std::string& id, const DeletedJobs& deleted);

 private:
  using Fits = std::function<bool(const LaunchRow&)>;
  async::Task<StatusOr<Earlier>> Scan(ArchiveQuery query, std::size_t wanted, Fits fits);
  std::vector<LaunchRow> RowsOf(const std::vector<EndedRecord>& records,
                                const std::vector<NodeRow>& nodes = {}) const;

  const ReadArchive read_;
  const HeadCore& core_;
  const Clock& clock_;
};

}  // namespace troupe::head
