// Orders to nodes to start ranks.
#pragma once

#include <cstddef>
#include <vector>

#include "head/core/launched/launch_networks.h"
#include "head/core/machine/turn.h"

namespace troupe::head {

/// `others`: ranks that come to this node in the places of others, all in one reservation; null:
/// the attempt begins.
void SendStartRanks(Turn& turn, const Launch& launch, std::size_t node_rank,
                    const LaunchNetworks& networks,
                    const std::vector<wire::NewRank>* others = nullptr);
/// Ranks in the places of others, all in one reservation, begin on a node that the attempt did not
/// begin on.
void SendStartRanksOf(Turn& turn, const Launch& launch, const NodeId& node,
                      const std::vector<wire::NewRank>& ranks);

}  // namespace troupe::head
