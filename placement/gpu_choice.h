// Choice of GPUs on a node: near each other, and so that the others stay near each other too.
//
// A node's GPUs stand in nested halves: those of one NVLink clique, of one NUMA node, of one PCIe
// switch, then fours and pairs by position. Whole and aligned: the smallest part that holds all, of
// equals the one with least left over, so a pair is never split over NUMA nodes while an aligned
// one is free (buddy allocation). Pure. The answer is in order of rails: rank i of a node gets the
// i-th.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace troupe::placement {

struct GpuPlace {
  std::uint32_t id = 0;
  std::uint32_t rail = 0;           // the NIC beside it, by number
  std::int32_t nvlink_clique = -1;  // -1: unknown, as below
  std::int32_t numa_node = -1;
  std::int32_t pcie_switch = -1;
};

/// `count` of the GPUs in `free`; nullopt when there are not so many.
std::optional<std::vector<std::uint32_t>> ChooseGpus(const std::vector<GpuPlace>& gpus,
                                                     const std::set<std::uint32_t>& free,
                                                     std::size_t count);

}  // namespace troupe::placement
