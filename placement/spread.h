// Bundles on distinct nodes: exact. If any such placement exists it is found.
//
// A flow from items to lots, one augmenting path at a time: equal bundles and equal nodes are one
// vertex each, so a gang of thousands on a uniform cluster is one path. Pure.
#pragma once

#include <optional>

#include "placement/field.h"

namespace troupe::placement {

std::optional<Picks> OnDistinctNodes(const Field& field, const Demand& demand);

}  // namespace troupe::placement
