// Stacks of this node's processes, read from outside by a child of the worker (troupe._stacks).
//
// View: one node; on the worker's loop. Read() suspends until the child has written all it found;
// four at a time at most. Errors say where the child's own error is, or how long it was waited for.
#pragma once

#include <string>
#include <vector>

#include "runtime/async/task.h"
#include "runtime/base/time.h"
#include "worker/supervisor.h"

namespace troupe::worker {

class StackReader {
 public:
  /// `supervisor` must outlive the reader.
  StackReader(async::Executor executor, Supervisor& supervisor)
      : executor_(std::move(executor)), supervisor_(supervisor) {}

  /// `targets`: "LABEL:PID" each. JSON, as the child writes it.
  async::Task<StatusOr<std::string>> Read(std::vector<std::string> targets, bool native);

 private:
  const async::Executor executor_;
  Supervisor& supervisor_;
  int open_ = 0;
};

}  // namespace troupe::worker
