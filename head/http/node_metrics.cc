#include "head/http/node_metrics.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace troupe::head {
namespace {

using wire::MeasureKind;

/// How a kind of figure is shown. Kinds of one family stand together.
struct Shown {
  MeasureKind kind;
  const char* family;
  FamilyKind type;
  const char* help;
  const char* key_label = nullptr;  // the label that Measure.key is
  const char* label = nullptr;  // label with a fixed value, which tells kinds of a family apart
  const char* value = nullptr;
};

constexpr char kState[] = "state", kUsed[] = "used", kFree[] = "free";
constexpr char kDevice[] = "device", kDirection[] = "direction";
constexpr char kMemory[] = "troupe_node_memory_bytes";
constexpr char kMemoryHelp[] = "Memory of a node, or of its control group where that has less.";
constexpr char kDisk[] = "troupe_node_disk_bytes";
constexpr char kDiskHelp[] = "File systems that a node writes to.";
constexpr char kNetwork[] = "troupe_node_network_bytes_total";
constexpr char kNetworkHelp[] = "Bytes that went over a node's interfaces.";
constexpr char kStore[] = "troupe_store_bytes";
constexpr char kStoreHelp[] = "Shared memory of a node that holds objects.";

constexpr Shown kNodeFigures[] = {
    {MeasureKind::kCpuRatio, "troupe_node_cpu_ratio", FamilyKind::kGauge,
     "Processors of a node that are busy, of all."},
    {MeasureKind::kCpuCount, "troupe_node_cpus", FamilyKind::kGauge, "Processors of a node."},
    {MeasureKind::kMemoryUsedBytes, kMemory, FamilyKind::kGauge, kMemoryHelp, nullptr, kState,
     kUsed},
    {MeasureKind::kMemoryFreeBytes, kMemory, FamilyKind::kGauge, kMemoryHelp, nullptr, kState,
     kFree},
    {MeasureKind::kDiskUsedBytes, kDisk, FamilyKind::kGauge, kDiskHelp, kDevice, kState, kUsed},
    {MeasureKind::kDiskFreeBytes, kDisk, FamilyKind::kGauge, kDiskHelp, kDevice, kState, kFree},
    {MeasureKind::kNetworkReceivedBytes, kNetwork, FamilyKind::kCounter, kNetworkHelp, kDevice,
     kDirection, "received"},
    {MeasureKind::kNetworkSentBytes, kNetwork, FamilyKind::kCounter, kNetworkHelp, kDevice,
     kDirection, "sent"},
    {MeasureKind::kPressureRatio, "troupe_node_pressure_ratio", FamilyKind::kGauge,
     "Part of the last 10 s in which some process of a node waited for a resource.", "resource"},
    {MeasureKind::kStoreUsedBytes, kStore, FamilyKind::kGauge, kStoreHelp, nullptr, kState, kUsed},
    {MeasureKind::kStoreFreeBytes, kStore, FamilyKind::kGauge, kStoreHelp, nullptr, kState, kFree},
    {MeasureKind::kComponentCpuSeconds, "troupe_component_cpu_seconds_total", FamilyKind::kCounter,
     "Processor time of a node's processes, by what they are.", "component"},
    {MeasureKind::kComponentMemoryBytes, "troupe_component_memory_bytes", FamilyKind::kGauge,
     "Resident memory of a node's processes, by what they are.", "component"},
};
constexpr Shown kGpuFigures[] = {
    {MeasureKind::kGpuUtilizationRatio, "troupe_gpu_utilization_ratio", FamilyKind::kGauge,
     "Part of the time in which a GPU ran kernels."},
    {MeasureKind::kGpuMemoryUsedBytes, "troupe_gpu_memory_used_bytes", FamilyKind::kGauge,
     "Memory of a GPU that is in use."},
    {MeasureKind::kGpuMemoryTotalBytes, "troupe_gpu_memory_total_bytes", FamilyKind::kGauge,
     "Memory of a GPU."},
    {MeasureKind::kGpuPowerWatts, "troupe_gpu_power_watts", FamilyKind::kGauge, "Power of a GPU."},
    {MeasureKind::kGpuEnergyJoules, "troupe_gpu_energy_joules_total", FamilyKind::kCounter,
     "Energy that a GPU has used since its driver was loaded."},
    {MeasureKind::kGpuTemperatureCelsius, "troupe_gpu_temperature_celsius", FamilyKind::kGauge,
     "Temperature of a GPU."},
    {MeasureKind::kGpuSmClockHertz, "troupe_gpu_sm_clock_hertz", FamilyKind::kGauge,
     "Clock of a GPU's multiprocessors."},
    {MeasureKind::kGpuPcieReplays, "troupe_gpu_pcie_replays_total", FamilyKind::kCounter,
     "PCIe packets that were sent again."},
    {MeasureKind::kGpuXidErrors, "troupe_gpu_xid_errors_total", FamilyKind::kCounter,
     "Errors that the driver reported, by their XID number, since the worker started.", "xid"},
};

struct Dcgm {
  MeasureKind kind;
  const char* family;
  FamilyKind type;
  double factor;
  const char* help;
};
// Counters there have no suffix, which OpenMetrics does not allow: so they have no type.
constexpr Dcgm kDcgm[] = {
    {MeasureKind::kGpuUtilizationRatio, "DCGM_FI_DEV_GPU_UTIL", FamilyKind::kGauge, 100,
     "GPU utilization (in %)."},
    {MeasureKind::kGpuMemoryUsedBytes, "DCGM_FI_DEV_FB_USED", FamilyKind::kGauge, 1 / kBytesPerMib,
     "Framebuffer memory used (in MiB)."},
    {MeasureKind::kGpuPowerWatts, "DCGM_FI_DEV_POWER_USAGE", FamilyKind::kGauge, 1,
     "Power draw (in W)."},
    {MeasureKind::kGpuEnergyJoules, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", FamilyKind::kUnknown,
     1000, "Total energy consumption since boot (in mJ)."},
    {MeasureKind::kGpuTemperatureCelsius, "DCGM_FI_DEV_GPU_TEMP", FamilyKind::kGauge, 1,
     "GPU temperature (in C)."},
    {MeasureKind::kGpuSmClockHertz, "DCGM_FI_DEV_SM_CLOCK", FamilyKind::kGauge, 1e-6,
     "SM clock frequency (in MHz)."},
    {MeasureKind::kGpuPcieReplays, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", FamilyKind::kUnknown, 1,
     "Total number of PCIe retries."},
    {MeasureKind::kGpuLastXid, "DCGM_FI_DEV_XID_ERRORS", FamilyKind::kGauge, 1,
     "Value of the last XID error encountered."},
};

const std::vector<NodeMeasure>& Of(const MeasuresByKind& measures, MeasureKind kind) {
  return measures[static_cast<std::size_t>(kind)];
}

/// Labels `node gpu uuid model`.
struct GpuLabels {
  GpuLabels(const NodeFigures& node, std::int32_t index, const wire::Device* device)
      : gpu(std::to_string(index)),
        labels{{"node", node.name},
               {"gpu", gpu},
               {"uuid", device == nullptr ? std::string_view() : device->uuid},
               {"model", device == nullptr ? std::string_view() : device->model}} {}
  std::string gpu;
  Exposition::Labels labels;
};

void AddFamily(Exposition& text, const MeasuresByKind& measures, const Shown* begin,
               const Shown* end, bool of_gpus) {
  const bool none =
      std::all_of(begin, end, [&](const Shown& each) { return Of(measures, each.kind).empty(); });
  if (none) return;
  text.Begin(begin->family, begin->type, begin->help);
  for (const Shown* shown = begin; shown != end; ++shown) {
    for (const NodeMeasure& each : Of(measures, shown->kind)) {
      std::optional<GpuLabels> gpu;
      if (of_gpus) gpu.emplace(*each.node, each.measure->gpu, DeviceOf(each));
      Exposition::Labels labels =
          of_gpus ? std::move(gpu->labels) : Exposition::Labels{{"node", each.node->name}};
      if (shown->key_label != nullptr) labels.emplace_back(shown->key_label, each.measure->key);
      if (shown->label != nullptr) labels.emplace_back(shown->label, shown->value);
      text.Add(labels, each.measure->value);
    }
  }
}

template <std::size_t kSize>
void AddFamilies(Exposition& text, const MeasuresByKind& measures, const Shown (&table)[kSize],
                 bool of_gpus) {
  for (const Shown* begin = table; begin != std::end(table);) {
    const std::string_view family = begin->family;
    const Shown* end = std::find_if(begin, std::end(table),
                                    [family](const Shown& each) { return family != each.family; });
    AddFamily(text, measures, begin, end, of_gpus);
    begin = end;
  }
}

void AddGpuOwners(Exposition& text, const Totals& totals) {
  const bool gpus = std::any_of(totals.node_figures.begin(), totals.node_figures.end(),
                                [](const NodeFigures& each) { return !each.devices.empty(); });
  if (!gpus && totals.gpu_owners.empty()) return;
  std::map<NodeId, const NodeFigures*> nodes;
  for (const NodeFigures& each : totals.node_figures) nodes[each.id] = &each;
  text.Begin("troupe_gpu_owner_info", FamilyKind::kGauge, "Who holds a GPU.");
  for (const auto& [place, owner] : totals.gpu_owners) {
    const auto node = nodes.find(place.first);
    if (node == nodes.end()) continue;
    const wire::Measure measure{MeasureKind::kGpuLastXid, "",
                                static_cast<std::int32_t>(place.second), 0};
    GpuLabels of(*node->second, measure.gpu, DeviceOf({node->second, &measure}));
    const std::string launch = owner.launch.IsNil() ? "" : owner.launch.Hex();
    of.labels.emplace_back("owner", owner.user);
    of.labels.emplace_back("launch", launch);
    text.Add(of.labels, 1);
  }
}

}  // namespace

MeasuresByKind SortMeasures(const Totals& totals) {
  MeasuresByKind sorted(static_cast<std::size_t>(wire::kMeasureKindLast) + 1);
  for (const NodeFigures& node : totals.node_figures) {
    if (!node.measures) continue;
    for (const wire::Measure& each : node.measures->measures) {
      sorted[static_cast<std::size_t>(each.kind)].push_back({&node, &each});
    }
  }
  return sorted;
}

const wire::Device* DeviceOf(const NodeMeasure& measure) {
  for (const wire::Device& device : measure.node->devices) {
    if (static_cast<std::int64_t>(device.index) == measure.measure->gpu) return &device;
  }
  return nullptr;
}

void AddNodeMetrics(Exposition& text, const Totals& totals, const MeasuresByKind& measures) {
  AddFamilies(text, measures, kNodeFigures, false);
  AddFamilies(text, measures, kGpuFigures, true);
  AddGpuOwners(text, totals);
}

void AddDcgmMetrics(Exposition& text, const MeasuresByKind& measures) {
  const auto add = [&text](const NodeMeasure& each, double value) {
    const wire::Device* device = DeviceOf(each);
    const std::string index = std::to_string(each.measure->gpu), name = "nvidia" + index;
    text.Add({{"gpu", index},
              {"UUID", device == nullptr ? std::string_view() : device->uuid},
              {"device", name},
              {"modelName", device == nullptr ? std::string_view() : device->model},
              {"Hostname", each.node->machine}},
             value);
  };
  for (const Dcgm& shown : kDcgm) {
    if (Of(measures, shown.kind).empty()) continue;
    text.Begin(shown.family, shown.type, shown.help);
    for (const NodeMeasure& each : Of(measures, shown.kind))
      add(each, each.measure->value * shown.factor);
  }
  const auto& used = Of(measures, MeasureKind::kGpuMemoryUsedBytes);
  const auto& total = Of(measures, MeasureKind::kGpuMemoryTotalBytes);
  if (used.empty() || used.size() != total.size()) return;
  text.Begin("DCGM_FI_DEV_FB_FREE", FamilyKind::kGauge, "Framebuffer memory free (in MiB).");
  for (std::size_t i = 0; i < used.size(); ++i)
    add(used[i], (total[i].measure->value - used[i].measure->value) / kBytesPerMib);
}

}  // namespace troupe::head
