#include "head/core/placed/gang_shape.h"

#include "head/core/machine/wire_convert.h"

namespace troupe::head {
namespace {

// The number of nodes that a launch says it goes over; 0: it does not say.
std::uint32_t NodesOf(const wire::LaunchSpec& spec) {
  if (spec.nodes > 0) return spec.nodes;
  return spec.ranks_per_node == 0 ? 0 : spec.ranks / spec.ranks_per_node;
}

}  // namespace

GangShape GangShapeOf(const wire::LaunchSpec& spec) {
  const std::uint32_t nodes = NodesOf(spec);
  if (nodes == 0) return {spec.ranks, 1, 0};
  return {nodes, spec.ranks / nodes, spec.ranks % nodes};
}

wire::Strategy GangStrategyOf(const wire::LaunchSpec& spec) {
  const std::uint32_t nodes = NodesOf(spec);
  if (nodes == 0) return spec.strategy;
  return nodes == 1 ? wire::Strategy::kStrictPack : wire::Strategy::kStrictSpread;
}

std::vector<placement::Resources> GangBundlesOf(const wire::LaunchSpec& spec) {
  const GangShape shape = GangShapeOf(spec);
  const placement::Resources rank = FromWire(spec.per_rank);
  std::vector<placement::Resources> bundles(shape.larger, rank.Times(shape.ranks_each + 1));
  bundles.resize(shape.count, rank.Times(shape.ranks_each));
  return bundles;
}

}  // namespace troupe::head
