// A node as the index keeps it, and amounts as numbers without names: plain values.
//
// View: the index's (cluster_index.h), which alone writes them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "placement/request.h"

namespace troupe::placement {

inline constexpr std::size_t kLevelsMax = 4;

/// By dimension of the index, scarcest first (GPU, custom resources, CPU, memory): comparing two as
/// words compares what is left of the scarce first.
using Amounts = std::vector<std::uint64_t>;

inline bool FitsIn(const Amounts& asked, const Amounts& free) {
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i] > free[i]) return false;
  }
  return true;
}

/// How often `asked` fits into `free`, at most `limit`.
inline std::uint64_t TimesIn(const Amounts& asked, const Amounts& free, std::uint64_t limit) {
  for (std::size_t i = 0; i < asked.size() && limit > 0; ++i) {
    if (asked[i] > 0) limit = std::min(limit, free[i] / asked[i]);
  }
  return limit;
}

inline void SubtractFrom(Amounts& left, const Amounts& amount) {
  for (std::size_t i = 0; i < left.size(); ++i) left[i] -= amount[i];
}
inline void AddTo(Amounts& left, const Amounts& amount) {
  for (std::size_t i = 0; i < left.size(); ++i) left[i] += amount[i];
}

struct Pool;

struct Host {
  /// The pool it is in by what is free (null: closed) and the one by its totals: index with Using.
  std::array<Pool*, 2> pools{};
  /// The domain it is in at each level, widest first; 0: it lacks the level's label.
  std::array<std::uint32_t, kLevelsMax> domains{};
  /// Orders hosts by domain, then name.
  std::uint64_t place = 0;
  NodeView view;
};

}  // namespace troupe::placement
