#include "placement/gpu_choice.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "placement/nested_fill.h"

namespace troupe::placement {
namespace {

constexpr std::size_t kParts = 5;  // clique, NUMA node, switch, four, pair

auto StandsAt(const GpuPlace& gpu) {
  return std::make_tuple(gpu.nvlink_clique, gpu.numa_node, gpu.pcie_switch, gpu.rail, gpu.id);
}

}  // namespace

std::optional<std::vector<std::uint32_t>> ChooseGpus(const std::vector<GpuPlace>& gpus,
                                                     const std::set<std::uint32_t>& free,
                                                     std::size_t count) {
  std::vector<GpuPlace> order = gpus;
  std::sort(order.begin(), order.end(),
            [](const GpuPlace& a, const GpuPlace& b) { return StandsAt(a) < StandsAt(b); });
  std::vector<std::array<std::uint32_t, kParts>> parts(order.size());
  std::vector<FillRow> rows;
  std::size_t room = 0;
  std::uint32_t position = 0;  // among those of one switch
  for (std::size_t i = 0; i < order.size(); ++i) {
    const GpuPlace& gpu = order[i];
    const bool first = i == 0 || gpu.nvlink_clique != order[i - 1].nvlink_clique ||
                       gpu.numa_node != order[i - 1].numa_node ||
                       gpu.pcie_switch != order[i - 1].pcie_switch;
    position = first ? 0 : position + 1;
    parts[i] = {static_cast<std::uint32_t>(gpu.nvlink_clique),
                static_cast<std::uint32_t>(gpu.numa_node),
                static_cast<std::uint32_t>(gpu.pcie_switch), position / 4, position / 2};
    const bool is_free = free.count(gpu.id) > 0;
    rows.push_back({is_free ? 1u : 0u, parts[i].data()});
    room += is_free ? 1 : 0;
  }
  if (room < count) return std::nullopt;
  const auto taken = NestedFill(rows, kParts, count);
  std::vector<GpuPlace> chosen;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (taken[i] > 0) chosen.push_back(order[i]);
  }
  std::sort(chosen.begin(), chosen.end(), [](const GpuPlace& a, const GpuPlace& b) {
    return std::tie(a.rail, a.id) < std::tie(b.rail, b.id);
  });
  std::vector<std::uint32_t> ids;
  for (const GpuPlace& gpu : chosen) ids.push_back(gpu.id);
  return ids;
}

}  // namespace troupe::placement
