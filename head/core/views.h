// The cluster as placement sees it, and requests in its terms.
#pragma once

#include <string>
#include <vector>

#include "head/core/turn.h"
#include "placement/request.h"

namespace troupe::head {

/// What is free on a node by the head's account: the node alone decides.
Resources FreeOf(const Node& node);
/// Nodes a top-level request may use. Dead ones are left out.
std::vector<placement::NodeView> ClusterView(Turn& turn);
/// Nodes of a group with its own bundles as totals and what its children left as free.
std::vector<placement::NodeView> GroupView(Turn& turn, const Group& parent);
/// The view a group is to be placed on.
std::vector<placement::NodeView> ViewFor(Turn& turn, const Group& group);

placement::Request RequestOf(const Turn& turn, const wire::GroupSubmitted& spec);
/// Equal per-rank bundles of a launch.
placement::Request RequestOf(const wire::LaunchSpec& spec);

/// Why a waiting group waits, in one line; empty when it does not.
std::string WaitingFor(Turn& turn, const Group& group);
/// How many top-level requests are before it in the queue.
std::uint32_t QueuePlace(const Turn& turn, const Group& group);

}  // namespace troupe::head
