// Clusters and requests as these tests write them: nodes of some GPUs, bundles of some GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "placement/request.h"

namespace troupe::placement {

inline Resources Gpus(std::uint64_t count) { return Resources::Of({{"GPU", count * kUnit}}); }

/// "node-3", all of it free.
inline NodeView Node(std::uint64_t number, std::uint64_t gpus, const Labels& labels = {}) {
  NodeView node;
  node.id = NodeId(7, number);
  node.name = "node-" + std::to_string(number);
  node.total = node.free = Gpus(gpus);
  node.labels = labels;
  return node;
}

inline NodeView Node(std::uint64_t number, std::uint64_t gpus, std::uint64_t free) {
  NodeView node = Node(number, gpus);
  node.free = Gpus(free);
  return node;
}

inline Request Ask(std::size_t bundles, std::uint64_t gpus, Strategy strategy = Strategy::kPack) {
  Request request;
  request.bundles.assign(bundles, Gpus(gpus));
  request.strategy = strategy;
  return request;
}

}  // namespace troupe::placement
