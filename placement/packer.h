// Decides which node holds which bundle.
//
// Pure; view: the head's copy of the cluster. Exact for equal bundles, STRICT_PACK and STRICT_SPREAD
// (matching): if any placement exists one is found. Different bundles under PACK and SPREAD: greedy
// first, then a search bounded by kSearchStepsMax. The same input gives the same plan; nodes of equal
// merit are taken by name.
//   PACK           few nodes: the fullest node that holds all, else the largest first
//   SPREAD         distinct nodes as far as they go, then evenly
//   STRICT_PACK    one node; STRICT_SPREAD: all distinct
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "placement/request.h"

namespace troupe::placement {

inline constexpr std::size_t kSearchStepsMax = 50'000;

enum class Using : bool { kFree, kTotal };

/// A plan that fits into what is free now; nullopt when there is none (see explain.h for why).
std::optional<Plan> Pack(const std::vector<NodeView>& nodes, const Request& request);
/// Whether an empty cluster of the same nodes, closed ones included, could hold it.
bool EverFits(const std::vector<NodeView>& nodes, const Request& request);
/// A plan on totals: where a request that must wait would go.
std::optional<Plan> PackOnTotals(const std::vector<NodeView>& nodes, const Request& request);

/// The gang form of a plan for equal ranks: ranks fill the nodes one after the other, so that a
/// node's ranks are consecutive. PACK starts with the node that takes most.
Gang GangOf(const std::vector<NodeView>& nodes, const Plan& plan);

}  // namespace troupe::placement
