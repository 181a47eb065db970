// Whom to end so that a request of higher priority gets a place: a decision, not the deed.
//
// Only groups of lower priority that may be ended; the lowest first, of equals the youngest, and no more
// than it takes: whoever the request would also fit beside is spared, the highest first. Pure; the index
// is as before afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "placement/cluster_index.h"
#include "placement/request.h"

namespace troupe::placement {

struct Running {
  GroupId group;
  int priority = 0;
  std::uint64_t order = 0;  // of submission
  bool may_be_ended = true;
  std::vector<std::pair<NodeId, Resources>> holds;
};

struct Preemption {
  std::vector<GroupId> victims;
  Plan plan;
};

/// nullopt: not even with all of them gone. No victims: it fits as things are.
std::optional<Preemption> WhomToPreempt(ClusterIndex& cluster, const Request& request, int priority,
                                        const std::vector<Running>& running);

}  // namespace troupe::placement
