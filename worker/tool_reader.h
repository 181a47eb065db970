// Readings of this node's processes from outside, each by a child of the worker: a module of the
// package that py-spy works for (troupe._tracing.stacks, troupe._tracing.profiles).
//
// View: one node; on the worker's loop. Run() suspends until the child has written all it found;
// four children of a module run at once at most. Errors say where the child's own error is, or how
// long it was waited for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/async/task.h"
#include "runtime/base/time.h"
#include "worker/supervisor.h"

namespace troupe::worker {

struct ToolRun {
  std::string module;
  std::vector<std::string> arguments;
  Duration limit;  // the child gives up sooner by itself
  std::size_t bytes_max = 8u << 20;
  std::string what;   // is read, for people: "stacks"
  std::string fewer;  // hint on how to shorten its text, for people
};

class ToolReader {
 public:
  /// `supervisor` must outlive the reader.
  ToolReader(async::Executor executor, Supervisor& supervisor)
      : executor_(std::move(executor)), supervisor_(supervisor) {}

  /// Returns the child's output.
  async::Task<StatusOr<std::string>> Run(ToolRun run);

 private:
  const async::Executor executor_;
  Supervisor& supervisor_;
  std::map<std::string, int> open_;  // by module
};

}  // namespace troupe::worker
