// Nodes' measures of themselves: kept with the node, the latest and the one before. GPUs that are
// held and idle are told of (idle_gpus.h), one event for each node and holder.
//
// Pure; view: the head.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

void OnNodeMeasures(Turn& turn, Node& node, const wire::NodeMeasures& message);

/// Describes the GPUs of the node that were told of and are idle still; empty: there are none.
std::string IdleGpusOf(const Turn& turn, const Node& node);

}  // namespace troupe::head
