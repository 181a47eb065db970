// The journal: the head's durable log of events, and what may be asked of any of them.
//
// View: one head. Blocking; used from one thread at a time (journal_thread.h gives it one). Rows have
// gap-free sequence numbers from 1. After an error from Append nothing may be appended any more: the
// caller stops (an fsync that failed once proves nothing when it succeeds later).
#pragma once

#include <functional>
#include <vector>

#include "head/core/io.h"
#include "runtime/base/status.h"

namespace troupe::head {

class Journal {
 public:
  virtual ~Journal() = default;
  /// Durable when it returns. All rows or none, in one commit.
  virtual Status Append(const std::vector<Row>& rows) = 0;
  /// Every row, in order. Errors: a gap, a checksum, an event of a newer version; the text names the
  /// repair command.
  virtual Status Replay(const std::function<void(const wire::Event&)>& visit) = 0;
  /// The disk is full and the reserve is used up or in use: only what ends things should be written.
  virtual bool low_space() const { return false; }
};

}  // namespace troupe::head
