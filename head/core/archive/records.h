// Launches that are over leave the head's memory for its disk: what goes there, what is read back,
// and which are in memory still.
//
//   AR-1  At most CoreOptions::ended_max launches that are over stay in memory, the latest ones,
//         and those that ended within CoreOptions::ended_least_us.
//   AR-2  One leaves memory only when its record is durable on disk.
//   AR-3  Requests about one that has left are answered as before, for the time that its record is
//         kept there (archive.h).
//
// Pure; plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

/// A launch that is over, as the events that make it again: LaunchKept, then what its ranks
/// returned.
struct EndedRecord {
  LaunchId launch;
  RequestId request;  // repeats of it must find the launch for as long as it is kept; nil: none
  std::string job;    // the id of the job that it is; empty: it is none
  std::uint64_t submitted_us = 0;
  std::uint64_t lived_us = 0;  // when its marker was written (lived_time.h)
  std::vector<wire::Event> events;
};

/// The records of the archive that are wanted: each kind is one search of an index.
struct ArchiveQuery {
  enum class By : std::uint8_t {
    kLaunch,  // a launch, with its ranks' results
    kRequest,  // launch of one submission
    kPrefix,  // launches whose id, or whose job's id, begins so, in the order of ids
    kTime,     // from `since_us` on and before `before`, the latest first
    kId,       // behind `launch`, in the order of ids
    kJob,      // jobs behind `text`, in the order of the jobs' ids
  };
  By by = By::kTime;
  LaunchId launch;
  RequestId request;
  std::string text;
  std::size_t limit = 0;  // but for kLaunch
  std::uint64_t since_us = 0;
  std::uint64_t before_us = 0;
  LaunchId before;  // nil: from the latest on
};
/// Reads such records on the caller's thread.
using ReadArchive = std::function<StatusOr<std::vector<EndedRecord>>(const ArchiveQuery&)>;

/// Read these records for a request that waits for them. All but kLaunch come without values.
struct Recall {
  SessionId session;  // session of the request
  std::uint64_t ticket = 0;
  ArchiveQuery query;
};

/// Answer to Effects::archive: these records are durable, or could not be written.
struct Archived {
  std::vector<LaunchId> launches;
  bool durable = false;
};
/// Answer to a Recall.
struct Recalled {
  SessionId session;
  std::uint64_t ticket = 0;
  std::vector<EndedRecord> records;
  std::string error;  // why none could be read; empty: they were
};

/// Launches that are over and in memory, in the order of their markers.
class EndedLaunches {
 public:
  void Add(std::uint64_t lived_us, const LaunchId& launch) { order_.emplace(lived_us, launch); }
  void Remove(std::uint64_t lived_us, const LaunchId& launch) {
    order_.erase({lived_us, launch});
    moving_.erase(launch);
  }
  bool empty() const { return order_.empty(); }
  std::size_t size() const { return order_.size(); }
  std::uint64_t OldestLivedUs() const { return order_.begin()->first; }
  const LaunchId& Oldest() const { return order_.begin()->second; }

  /// The latest `count`, the latest first.
  std::vector<LaunchId> Latest(std::size_t count) const;

  /// The oldest, `batch` of them at most, if there are more than `keep`, but none that ended after
  /// that lived time; they are on their way from now on. None while others are.
  std::vector<LaunchId> BeginMove(std::size_t keep, std::size_t batch, std::uint64_t until_us);
  /// The records could not be written: they move later.
  void EndMove() { moving_.clear(); }

  bool moving() const { return !moving_.empty(); }

  bool timer_armed = false;  // for the oldest, whose retention ends
  bool move_armed = false;   // for the oldest, which may move

 private:
  std::set<std::pair<std::uint64_t, LaunchId>> order_;
  std::set<LaunchId> moving_;
};

}  // namespace troupe::head
