#include "head/core/nodes/node_measures.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::head {
namespace {

using Idle = IdleGpus::Idle;

// Maps a node's GPUs to the reservations that hold them; of one inside another to the inner one,
// which says more of the holder.
std::map<std::uint32_t, const Group*> HoldersOf(const Turn& turn, const Node& node) {
  std::map<std::uint32_t, const Group*> holders;
  for (const auto& [lease, holding] : node.holdings) {
    const auto group = turn.state.groups.find(lease.first);
    if (group == turn.state.groups.end() || group->second.attempt != lease.second) continue;
    for (const wire::BundlePlace& place : group->second.places) {
      if (place.node != node.id) continue;
      for (const std::uint32_t gpu : place.gpu_ids) {
        const Group*& holder = holders[gpu];
        if (holder == nullptr || !group->second.spec.parent.IsNil()) holder = &group->second;
      }
    }
  }
  return holders;
}

std::vector<IdleGpus::Look> LooksAt(const Turn& turn, const Node& node) {
  std::vector<IdleGpus::Look> looks;
  std::optional<std::map<std::uint32_t, const Group*>> holders;  // only for GPUs that do nothing
  for (const wire::Measure& measure : node.measures->measures) {
    if (measure.kind != wire::MeasureKind::kGpuUtilizationRatio || measure.gpu < 0) continue;
    IdleGpus::Look look;
    look.gpu = static_cast<std::uint32_t>(measure.gpu);
    look.ratio = measure.value;
    if (look.ratio < IdleGpus::kIdleRatio) {
      if (!holders) holders = HoldersOf(turn, node);
      const auto holder = holders->find(look.gpu);
      if (holder != holders->end()) look.holder = holder->second->spec.group;
    }
    looks.push_back(look);
  }
  return looks;
}

std::string NamedOr(const std::string& name, const Id128& id) {
  return name.empty() ? IdToHex(id).substr(0, 8) : name;
}

// "launch train of alice", and what it is in the event.
std::string NameHolder(const Turn& turn, const GroupId& id, wire::ClusterEvent* event) {
  const auto found = turn.state.groups.find(id);
  if (found == turn.state.groups.end()) return "somebody";
  const wire::GroupSubmitted& spec = found->second.spec;
  event->launch = spec.launch;
  event->actor = spec.actor;
  const auto launch = turn.state.launches.find(spec.launch);
  const auto actor = turn.state.actors.find(spec.actor);
  std::string holder = "placement group " + NamedOr(spec.name, id);
  if (actor != turn.state.actors.end()) {
    const wire::ActorSpec& made = actor->second.spec;
    event->launch = actor->second.launch;
    holder = made.leased ? "a process for tasks" : "actor " + made.class_name;
    if (!made.name.empty()) holder += " '" + made.name + "'";
  } else if (launch != turn.state.launches.end() && spec.gang) {
    holder = "launch " + NamedOr(launch->second.spec.name, spec.launch);
  }
  const std::string user = turn.state.users.Named(spec.user);
  return user.empty() ? holder : holder + " of " + user;
}

std::string Minutes(Duration time) {
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(time).count();
  return std::to_string(minutes) + (minutes == 1 ? " minute" : " minutes");
}

using ByHolder = std::map<GroupId, std::vector<Idle>>;

ByHolder SortedByHolder(const std::vector<Idle>& idle) {
  ByHolder sorted;
  for (const Idle& each : idle) sorted[each.holder].push_back(each);
  return sorted;
}

// "GPU 3 is idle for 30 minutes, held by launch train of alice"
std::string Describe(const std::vector<Idle>& idle, const std::string& holder) {
  std::string text = idle.size() == 1 ? "GPU " : "GPUs ";
  Duration lasts = idle.front().lasts;
  for (const Idle& each : idle) {
    if (&each != &idle.front()) text += ", ";
    text += std::to_string(each.gpu);
    lasts = std::min(lasts, each.lasts);
  }
  return text + " idle for " + Minutes(lasts) + ", held by " + holder;
}

}  // namespace

void OnNodeMeasures(Turn& turn, Node& node, const wire::NodeMeasures& message) {
  node.measures_before = std::move(node.measures);
  node.measured_before = std::exchange(node.measured, turn.now);
  node.measures = std::make_shared<const wire::NodeMeasures>(message);
  if (turn.options.idle_gpu_after == Duration::zero()) return;
  const std::vector<Idle> due =
      node.idle_gpus.See(LooksAt(turn, node), turn.now, turn.options.idle_gpu_after);
  for (const auto& [group, gpus] : SortedByHolder(due)) {
    wire::ClusterEvent event;
    event.wall_us = turn.wall_us;
    event.severity = wire::Severity::kWarning;
    event.source = wire::EventSource::kNode;
    event.node = node.id;
    const std::string holder = NameHolder(turn, group, &event);
    event.message = "node " + node.name + ": " + Describe(gpus, holder);
    turn.state.history.Add(std::move(event));
  }
}

std::string IdleGpusOf(const Turn& turn, const Node& node) {
  std::string text;
  for (const auto& [group, gpus] : SortedByHolder(node.idle_gpus.Told(turn.now))) {
    wire::ClusterEvent unused;
    if (!text.empty()) text += "; ";
    text += Describe(gpus, NameHolder(turn, group, &unused));
  }
  return text;
}

}  // namespace troupe::head
