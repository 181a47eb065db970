// Fills `wanted` equal things into rows that stand in nested domains, using few and near ones.
//
// At each level, as long as no domain holds the rest, the roomiest is taken in full; then the
// tightest that holds the rest, and the same inside it. One rule for racks, nodes in a rack, and
// GPUs on a node's switches. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::placement {

struct FillRow {
  std::uint64_t room = 0;
  /// The domain it is in at each level, widest first; rows of equal numbers stand next to each
  /// other.
  const std::uint32_t* domains = nullptr;
};

/// How many go to each row; the rows must have room for `wanted`. `levels`: how many domains each
/// row has; below them each row is a domain of its own.
std::vector<std::uint64_t> NestedFill(const std::vector<FillRow>& rows, std::size_t levels,
                                      std::uint64_t wanted);

/// A run of rows of one domain.
struct FillRun {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint64_t room = 0;
};
/// The domains of a level among rows [begin, end); at level `levels` the rows.
std::vector<FillRun> RunsOf(const std::vector<FillRow>& rows, std::size_t levels, std::size_t level,
                            std::size_t begin, std::size_t end);

}  // namespace troupe::placement
