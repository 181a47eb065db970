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
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

/// A launch that is over, as the events that make it again: LaunchKept, then what its ranks
/// returned.
struct EndedRecord {
  LaunchId launch;
  std::uint64_t submitted_us = 0;
  std::uint64_t lived_us = 0;  // when its marker was written (lived_time.h)
  std::vector<wire::Event> events;
};

/// Read one record, or a page of them: the latest `limit` that were submitted from `since_us` on
/// and, where `before` is set, before that launch. Those of a page come without values.
struct Recall {
  SessionId session;  // whose request waits for it
  std::uint64_t ticket = 0;
  LaunchId launch;  // nil: a page
  std::size_t limit = 0;
  std::uint64_t since_us = 0;
  std::uint64_t before_us = 0;
  LaunchId before;
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
  /// They could not be written: they are to move later.
  void EndMove() { moving_.clear(); }

  bool timer_armed = false;  // for the oldest

 private:
  std::set<std::pair<std::uint64_t, LaunchId>> order_;
  std::set<LaunchId> moving_;
};

}  // namespace troupe::head
