// The journal: the head's durable log of events, and what may be asked of any of them.
//
// View: one head. Blocking; used from one thread at a time (journal_thread.h gives it one). Rows
// have gap-free sequence numbers from 1. A snapshot takes the place of all rows up to its sequence
// number. After an error from Append nothing may be appended any more: the caller stops (an fsync
// that failed once proves nothing when it succeeds later). A full disk is not an error of that
// kind: nothing was written, and the same rows may be appended again.
#pragma once

#include <functional>
#include <vector>

#include "head/core/machine/io.h"
#include "runtime/base/status.h"

namespace troupe::head {

/// Returns true if this is Append's "no room on the disk".
inline bool IsDiskFull(const Status& status) {
  return status.code() == absl::StatusCode::kOutOfRange;
}

class Journal {
 public:
  virtual ~Journal() = default;
  /// Durable when it returns. All rows or none, in one commit. IsDiskFull(): no room, nothing
  /// changed.
  virtual Status Append(const std::vector<Row>& rows) = 0;
  /// Makes `events` stand for every row up to `sequence`, all of which are durable; at once or not
  /// at all. Without room, or after a failure, nothing changes: the rows are still there.
  virtual Status Snapshot(std::uint64_t sequence, const std::vector<wire::Event>& events) = 0;
  /// The snapshot's events, each with the sequence number it stands for, then every row after it,
  /// in order. Errors: a gap, a checksum, an event of a newer version; the text names the repair
  /// command.
  virtual Status Replay(const std::function<void(const Row&)>& visit) = 0;
  /// The disk is full and the reserve is used up or in use: only what ends things should be
  /// written.
  virtual bool low_space() const { return false; }
  /// Looks whether there is room again; low_space() says so.
  virtual void Reclaim() {}
};

}  // namespace troupe::head
