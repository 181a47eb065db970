// Choice of ended log folders to keep, and to remove: by age, by size and by number.
//
// View: one node; pure: times and sizes are given. A folder belongs to a launch or an actor. While
// a process writes there it is in use and never goes; afterwards it is kept until it is older than
// `age_us`, and while all kept ones together are within `bytes`, `folders` and `files`; the oldest
// go first. What ended last goes by its age alone: whoever wants to know why it ended must find it.
// Small folders move to packs, many at once, where they are no files of their own (log_packs.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::worker {

struct RetentionLimits {
  std::uint64_t age_us = 7ull * 24 * 3600 * 1'000'000;
  std::uint64_t bytes = 4ull << 30;
  std::size_t folders = 10'000;
  /// Files and folders of those that are in no pack.
  std::uint64_t files = 15'000;
  /// From so many on that are small and in no pack, all but the latest `loose_least` are packed.
  std::size_t loose_most = 96;
  std::size_t loose_least = 32;
  std::uint64_t small_bytes = 1u << 20;
};

/// The size of a folder of logs, and the time since which nobody writes there.
struct EndedLogs {
  std::uint64_t ended_us = 0;
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;  // 0: it is in a pack
};

class LogRetention {
 public:
  explicit LogRetention(RetentionLimits limits) : limits_(limits) {}

  /// Notes that one more process writes to a folder.
  void Take(const std::string& folder);
  /// Notes that one process fewer writes to a folder; true: it was the last, and the folder may be
  /// Put.
  bool Release(const std::string& folder);
  /// Keeps a folder; nothing when it is in use.
  void Put(const std::string& folder, const EndedLogs& ended);
  /// The folders to remove, oldest first; they are kept no longer.
  std::vector<std::string> Overdue(std::uint64_t now_us);
  /// The folders that are to be packed now, with the times of their ends; none while others are.
  std::vector<std::pair<std::string, std::uint64_t>> BeginPacking();
  /// Ends a packing, successful or not. Returns the folders whose files are to go: nobody has
  /// written there since.
  std::vector<std::string> EndPacking(bool packed);

  bool in_use(const std::string& folder) const { return in_use_.count(folder) > 0; }
  bool keeps(const std::string& folder) const { return kept_.count(folder) > 0; }
  std::size_t kept() const { return kept_.size(); }
  std::uint64_t kept_bytes() const { return bytes_; }
  std::uint64_t kept_files() const { return files_; }

 private:
  void Drop(const std::string& folder);

  const RetentionLimits limits_;
  std::map<std::string, int> in_use_;  // folder -> processes
  std::map<std::string, EndedLogs> kept_;
  std::set<std::pair<std::uint64_t, std::string>> by_age_;
  std::set<std::pair<std::uint64_t, std::string>> loose_;  // small, and in no pack
  std::set<std::string> packing_;
  std::uint64_t bytes_ = 0;
  std::uint64_t files_ = 0;
};

}  // namespace troupe::worker
