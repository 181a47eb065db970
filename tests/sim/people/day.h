// A day of several people on one cluster: owners who always have requests that wait, heads that
// crash, nodes that are lost for a while. The sessions' periods are a hundred times those of a real
// head, so that a day is some ten thousand events.
//
// Three kinds of day, one after the other:
//   equals   all requests are of one size; one of the owners may have a cap
//   service  one owner holds a part of the cluster all day long, and wants more now and then
//   gang     one owner wants half of the cluster at once, the others a CPU at a time
#pragma once

#include <cstdint>
#include <string>

namespace troupe::sim {

struct DayResult {
  std::uint64_t seed = 0;
  std::uint64_t trace = 0;
  std::uint64_t events = 0;
  std::uint64_t grants = 0;
  double spread = 0;          // between equals; 0 of other kinds
  double longest_wait_s = 0;  // longest wait of an owner for a grant
  std::string plan;
  std::string failure;  // empty: all held
};

DayResult RunDay(std::uint64_t seed, bool verbose = false);

}  // namespace troupe::sim
