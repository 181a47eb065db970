// Nodes' measures of themselves: kept with the node, the latest and the one before.
#pragma once

#include <memory>
#include <utility>

#include "head/core/turn.h"

namespace troupe::head {

inline void OnNodeMeasures(const Turn& turn, Node& node, const wire::NodeMeasures& message) {
  node.measures_before = std::move(node.measures);
  node.measured_before = std::exchange(node.measured, turn.now);
  node.measures = std::make_shared<const wire::NodeMeasures>(message);
}

}  // namespace troupe::head
