// Rings of spans that processes of this node leave behind (runtime/obs/trace.h): the latest are
// kept, so that a timeline has what a process did before it died.
//
// View: one node; on the worker's loop. Few small writes at the end of a process, nothing else.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/base/time.h"

namespace troupe::worker {

class RingFiles {
 public:
  static constexpr std::size_t kEndedMax = 256;
  static constexpr std::uint64_t kEndedBytesMax = 64u << 20;

  /// A process makes the file named by its id in `folder`.
  explicit RingFiles(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  /// No process writes to it any more: it is told when that was, and the oldest beyond the limits
  /// are removed. A process without a ring is nothing to do with.
  void Ended(const ProcessId& process, Instant now);

 private:
  struct Kept {
    std::string path;
    std::uint64_t bytes = 0;
  };
  std::string folder_;
  std::deque<Kept> ended_;  // the oldest first
  std::uint64_t ended_bytes_ = 0;
};

}  // namespace troupe::worker
