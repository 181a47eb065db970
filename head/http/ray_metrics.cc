#include "head/http/ray_metrics.h"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::head {
namespace {

using wire::MeasureKind;

class RayText {
 public:
  RayText(Exposition& text, const Totals& totals, const MeasuresByKind& measures)
      : text_(text), totals_(totals), measures_(measures) {}

  void AddCluster() {
    Begin("ray_resources", "Logical resources by state.");
    for (const auto& [name, each] : totals_.resources) {
      const std::uint64_t used = each.total - std::min(each.total, each.free + each.missing);
      Add({{"Name", name}, {"State", "AVAILABLE"}}, static_cast<double>(each.free) / 10000);
      Add({{"Name", name}, {"State", "USED"}}, static_cast<double>(used) / 10000);
    }
    Begin("ray_actors", "Actors by state.");
    constexpr std::pair<wire::ActorState, const char*> kActors[] = {
        {wire::ActorState::kPending, "PENDING_CREATION"},
        {wire::ActorState::kStarting, "DEPENDENCIES_UNREADY"},
        {wire::ActorState::kAlive, "ALIVE"},
        {wire::ActorState::kUnavailable, "RESTARTING"},
        {wire::ActorState::kDead, "DEAD"}};
    for (const auto& [state, name] : kActors) AddCount(totals_.actors, state, name);
    Begin("ray_placement_groups", "Placement groups by state.");
    constexpr std::pair<wire::GroupState, const char*> kGroups[] = {
        {wire::GroupState::kPending, "PENDING"},
        {wire::GroupState::kCreated, "CREATED"},
        {wire::GroupState::kRescheduling, "RESCHEDULING"},
        {wire::GroupState::kRemoved, "REMOVED"}};
    for (const auto& [state, name] : kGroups) AddCount(totals_.placement_groups, state, name);
  }

  void AddNodes() {
    Each("ray_node_cpu_utilization", MeasureKind::kCpuRatio, 100, "Processors in use (in %).");
    Each("ray_node_cpu_count", MeasureKind::kCpuCount, 1, "Processors of a node.");
    Each("ray_node_mem_used", MeasureKind::kMemoryUsedBytes, 1, "Memory in use (in bytes).");
    Each("ray_node_mem_available", MeasureKind::kMemoryFreeBytes, 1, "Free memory (in bytes).");
    Sum("ray_node_mem_total", MeasureKind::kMemoryUsedBytes, MeasureKind::kMemoryFreeBytes,
        "Memory (in bytes).");
    Each("ray_node_disk_usage", MeasureKind::kDiskUsedBytes, 1, "Disk in use (in bytes).");
    Each("ray_node_disk_free", MeasureKind::kDiskFreeBytes, 1, "Free disk (in bytes).");
    Each("ray_node_gpus_utilization", MeasureKind::kGpuUtilizationRatio, 100,
         "GPU utilization (in %).");
    Each("ray_node_gram_used", MeasureKind::kGpuMemoryUsedBytes, 1 / kBytesPerMib,
         "GPU memory in use (in MiB).");
    Less("ray_node_gram_available", MeasureKind::kGpuMemoryTotalBytes,
         MeasureKind::kGpuMemoryUsedBytes, "Free GPU memory (in MiB).");
    AddComponentCpu();
    Each("ray_component_rss_mb", MeasureKind::kComponentMemoryBytes, 1e-6,
         "Resident memory of a component (in MB).");
    Each("ray_component_rss_bytes", MeasureKind::kComponentMemoryBytes, 1,
         "Resident memory of a component (in bytes).");
  }

 private:
  using Labels = Exposition::Labels;

  void Begin(const char* name, const char* help) { text_.Begin(name, FamilyKind::kGauge, help); }
  void Add(Labels labels, double value) {
    labels.emplace_back("SessionName", totals_.cluster);
    text_.Add(labels, value);
  }
  template <class State>
  void AddCount(const std::map<State, std::uint64_t>& counts, State state, const char* name) {
    const auto found = counts.find(state);
    Add({{"State", name}}, found == counts.end() ? 0 : static_cast<double>(found->second));
  }
  const std::vector<NodeMeasure>& Of(MeasureKind kind) const {
    return measures_[static_cast<std::size_t>(kind)];
  }
  void AddOne(const NodeMeasure& each, double value) {
    Labels labels = {{"ip", each.node->host}, {"node", each.node->name}};
    const std::string gpu = std::to_string(each.measure->gpu);
    if (each.measure->gpu >= 0) {
      const wire::Device* device = DeviceOf(each);
      labels.emplace_back("GpuIndex", gpu);
      labels.emplace_back("GpuDeviceName", device == nullptr ? std::string_view() : device->model);
    } else if (!each.measure->key.empty()) {
      const bool disk = each.measure->kind == MeasureKind::kDiskUsedBytes ||
                        each.measure->kind == MeasureKind::kDiskFreeBytes;
      labels.emplace_back(disk ? "device" : "Component", each.measure->key);
    }
    Add(std::move(labels), value);
  }
  void Each(const char* name, MeasureKind kind, double factor, const char* help) {
    if (Of(kind).empty()) return;
    Begin(name, help);
    for (const NodeMeasure& each : Of(kind)) AddOne(each, each.measure->value * factor);
  }
  void Sum(const char* name, MeasureKind a, MeasureKind b, const char* help) {
    if (Of(a).empty() || Of(a).size() != Of(b).size()) return;
    Begin(name, help);
    for (std::size_t i = 0; i < Of(a).size(); ++i)
      AddOne(Of(a)[i], Of(a)[i].measure->value + Of(b)[i].measure->value);
  }
  void Less(const char* name, MeasureKind a, MeasureKind b, const char* help) {
    if (Of(a).empty() || Of(a).size() != Of(b).size()) return;
    Begin(name, help);
    for (std::size_t i = 0; i < Of(a).size(); ++i)
      AddOne(Of(a)[i], (Of(a)[i].measure->value - Of(b)[i].measure->value) / kBytesPerMib);
  }
  /// Adds the use during the time between a node's last two measurements.
  void AddComponentCpu() {
    bool begun = false;
    for (const NodeMeasure& each : Of(MeasureKind::kComponentCpuSeconds)) {
      if (!each.node->before || each.node->apart_s <= 0) continue;
      for (const wire::Measure& before : each.node->before->measures) {
        if (before.kind != each.measure->kind || before.key != each.measure->key) continue;
        if (!std::exchange(begun, true))
          Begin("ray_component_cpu_percentage", "Processors that a component uses (in %).");
        AddOne(each, std::max(0.0, each.measure->value - before.value) / each.node->apart_s * 100);
      }
    }
  }

  Exposition& text_;
  const Totals& totals_;
  const MeasuresByKind& measures_;
};

}  // namespace

void AddRayMetrics(Exposition& text, const Totals& totals, const MeasuresByKind& measures) {
  RayText ray(text, totals, measures);
  ray.AddCluster();
  ray.AddNodes();
}

}  // namespace troupe::head
