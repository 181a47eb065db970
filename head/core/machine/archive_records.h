// Launches that are over leave the head's memory for its disk: what goes there, what is read back,
// and which are in memory still.
//
//   AR-1  At most CoreOptions::ended_max launches that are over stay in memory, the latest ones,
//         however quickly they end: the more there are too many, the more move at once. What ends
//         while records are being written is added to that number.
//   AR-2  One leaves memory only when its record is durable on disk.
//   AR-3  Requests about one that has left are answered as before, for the time that its record is
//         kept there (archive.h).
//   AR-4  A submission that is repeated because its answer was lost is no second launch, though its
//         launch has left memory: the ids of the submissions of the latest moves are remembered
//         (moved_submissions.h), and their launches are found in the archive.
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

#include "head/core/machine/moved_submissions.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

/// A launch that is over, as the events that make it again: LaunchKept, then what its ranks
/// returned.
struct EndedRecord {
  LaunchId launch;
  RequestId request;  // a repeat of this submission finds the launch (AR-4); nil: none does
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

/// How many of so many launches that are over move at once, where `keep` stay in memory.
std::size_t BatchOf(std::size_t ended, std::size_t keep);

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

  /// The oldest, if there are more than `keep`: BatchOf of them, which are on their way from now
  /// on. None while others are.
  std::vector<LaunchId> BeginMove(std::size_t keep);
  /// Ends the move; those that are still in memory move later.
  void EndMove() { moving_.clear(); }

  bool moving() const { return !moving_.empty(); }

  bool timer_armed = false;   // for the oldest, whose retention ends
  bool write_armed = false;   // for records that could not be written
  bool forget_armed = false;  // for `moved`
  MovedSubmissions moved;     // volatile

 private:
  std::set<std::pair<std::uint64_t, LaunchId>> order_;
  std::set<LaunchId> moving_;
};

}  // namespace troupe::head
