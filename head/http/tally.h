// Counts what happens in a cluster, from what the reducer writes down, since the head started.
//
// Pure; on the head's loop. The labels are values of enums and nothing that a program chooses, so
// there is a bounded number of them.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "head/core/head_core.h"
#include "head/http/histogram.h"

namespace troupe::head {

/// By kind ("rank", "actor", "launch") and cause (a FailureKind, or as the metric's help says).
using CountsByCause = std::map<std::pair<std::string_view, std::string_view>, std::uint64_t>;

struct ClusterCounts {
  CountsByCause process_exits;
  CountsByCause nodes_lost;
  CountsByCause restarts;
  CountsByCause preemptions;
  Histogram launch_ready;
};

class Tally {
 public:
  /// After a step that wrote `rows` down and left `state`.
  void OnStep(const std::vector<Row>& rows, const State& state);
  const ClusterCounts& counts() const { return counts_; }

 private:
  class Events;
  ClusterCounts counts_;
};

}  // namespace troupe::head
