// Decides which node holds which bundle.
//
// Pure; view: the head's copy of the cluster. Exact for equal bundles, STRICT_PACK and
// STRICT_SPREAD: if any placement exists one is found. Different bundles under PACK and SPREAD:
// greedy first, then a search bounded by kSearchStepsMax (mixed.h). The same cluster and request
// give the same plan, in whatever order the nodes were told; nodes of equal merit are taken by
// place, then by name.
//   PACK           few nodes: the tightest node that holds all, else the roomiest first
//   SPREAD         distinct nodes as far as they go, then evenly
//   STRICT_PACK    one node; STRICT_SPREAD: all distinct
// With a level the narrowest domain that holds all is taken, of equals the one with least room
// left; inside it few and near sub-domains.
#pragma once

#include <optional>
#include <vector>

#include "placement/cluster_index.h"
#include "placement/request.h"

namespace troupe::placement {

/// A plan that fits into what is free now; nullopt when there is none (see explain.h for why).
std::optional<Plan> Pack(ClusterIndex& cluster, const Request& request);
/// Returns true if an empty cluster of the same nodes, closed ones included, could hold it.
bool EverFits(ClusterIndex& cluster, const Request& request);
/// A plan on free amounts or on totals.
std::optional<Plan> PackOn(ClusterIndex& cluster, const Request& request, Using what);

/// A plan on what is free on these nodes, for a cluster that is planned on once; nullopt: there is
/// none.
std::optional<Plan> Pack(const std::vector<NodeView>& nodes, const Request& request);
/// Returns true if these nodes, closed ones included, could hold the request if they were empty.
bool EverFits(const std::vector<NodeView>& nodes, const Request& request);

/// The gang form of a plan for equal ranks.
Gang GangOf(const Plan& plan);

}  // namespace troupe::placement
