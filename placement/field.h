// The nodes a plan chooses from: a whole cluster or one domain of it, equal ones in lots.
//
// A value, for one plan; borrows hosts and pools of the index. At most as many nodes of a lot are
// listed as there are bundles: more are never used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "placement/demand.h"

namespace troupe::placement {

struct Lot {
  const Pool* pool = nullptr;
  std::vector<const Host*> hosts;  // by place
};
/// Tightest lot first.
using Field = std::vector<Lot>;

/// `count` bundles of an item on a node.
struct Pick {
  std::size_t item = 0;
  const Host* host = nullptr;
  std::uint64_t count = 0;
};
using Picks = std::vector<Pick>;

Field FieldOf(const PoolSet& pools, const Demand& demand);
Field FieldOf(const Host* const* begin, const Host* const* end, Using what, const Demand& demand);

}  // namespace troupe::placement
