// Different bundles together on nodes: greedy first, then a bounded search.
//
// Vector bin packing is NP-hard: this is where exactness ends (kSearchStepsMax). Equal bundles in
// one item are exact here too: each takes room that is there. Pure.
#pragma once

#include <cstddef>
#include <optional>

#include "placement/field.h"

namespace troupe::placement {

inline constexpr std::size_t kSearchStepsMax = 50'000;
/// More bundles than this are not searched for.
inline constexpr std::size_t kSearchBundlesMax = 64;

enum class Prefer : bool { kFewNodes, kManyNodes };

std::optional<Picks> Mixed(const Field& field, const Demand& demand, Prefer prefer);

}  // namespace troupe::placement
