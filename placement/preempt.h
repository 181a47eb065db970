// Choice of groups to end so that a request of higher priority gets a place: a decision, not the
// deed.
//
// Only groups of lower priority that may be ended; the lowest first, of equals the youngest, and no
// more than it takes: whoever the request would also fit beside is spared, the highest first. What
// is on its way out already is as good as free: nobody is ended for room that comes anyway. Pure;
// the index is as before afterwards.
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
  std::uint64_t order = 0;  // place among all that were submitted
  bool may_be_ended = true;
  bool ending = false;  // processes are being ended: whatever its priority, its room comes
  std::vector<std::pair<NodeId, Resources>> holds;
};

struct Preemption {
  std::vector<GroupId> victims;
  Plan plan;  // plan once they, and those that are ending, are gone
  bool fits_now = false;  // as things are
};

/// nullopt: not even with all of them gone.
std::optional<Preemption> WhomToPreempt(ClusterIndex& cluster, const Request& request, int priority,
                                        const std::vector<Running>& running);

}  // namespace troupe::placement
