// How a launch's ranks are put into bundles, of which each goes to one node. Pure.
#pragma once

#include <cstdint>

#include "placement/request.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

/// `count` bundles, each of `ranks_each` ranks, the first `larger` of one rank more. They come in
/// the order of ranks.
struct GangShape {
  std::uint32_t count = 0;
  std::uint32_t ranks_each = 0;
  std::uint32_t larger = 0;
};
GangShape GangShapeOf(const wire::LaunchSpec& spec);
/// The strategy by which the bundles are placed.
wire::Strategy GangStrategyOf(const wire::LaunchSpec& spec);
/// Resources of each bundle, in order.
std::vector<placement::Resources> GangBundlesOf(const wire::LaunchSpec& spec);

}  // namespace troupe::head
