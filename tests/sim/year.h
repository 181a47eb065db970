// A year of use in the simulator: heads and workers have no more in memory at its end than their
// limits allow.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::sim {

struct YearResult {
  std::string failure;  // empty: all tables are within their limits
  std::uint64_t launches = 0;
  std::uint64_t archived = 0;
  std::uint64_t actors = 0;
  std::uint64_t nodes = 0;
  std::uint64_t heads = 0;
  std::uint64_t events = 0;
};

/// Each day launches and actors run and end, nodes and callers come and go; now and then the head
/// or a worker is killed. In between nothing happens but heartbeats.
YearResult RunYear(std::uint64_t seed, int days);

}  // namespace troupe::sim
