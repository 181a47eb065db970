#include "head/core/status.h"

#include <utility>
#include <vector>

#include "head/core/archive/launch_list.h"
#include "head/core/groups.h"
#include "head/core/launches.h"
#include "head/core/metrics/node_measures.h"
#include "head/core/views.h"
#include "head/core/wire_convert.h"

namespace troupe::head {

namespace {

// The open ones and, behind them, the latest that are over.
std::vector<const Launch*> LaunchesOfStatus(const State& state) {
  constexpr std::size_t kEndedMax = 1000;
  std::vector<const Launch*> listed;
  for (const auto& [id, launch] : state.launches) {
    if (launch.open()) listed.push_back(&launch);
  }
  for (const LaunchId& id : state.ended.Latest(kEndedMax)) listed.push_back(&state.launches.at(id));
  return listed;
}

}  // namespace

wire::NodeState StateOf(const Node& node) {
  return node.dead                        ? wire::NodeState::kDead
         : node.suspect || !node.reported ? wire::NodeState::kSuspect
         : node.draining || node.leaving  ? wire::NodeState::kDraining
                                          : wire::NodeState::kAlive;
}

wire::NodeInfo InfoOf(const Turn& turn, const Node& node) {
  wire::NodeInfo info;
  info.node = node.id;
  info.name = node.name;
  info.host = node.info.host;
  info.state = StateOf(node);
  info.incarnation = node.incarnation;
  info.listen_host = node.info.listen_host;
  info.listen_port = node.info.listen_port;
  info.unix_path = node.info.unix_path;
  info.boot_id = node.info.boot_id;
  info.pid = node.info.pid;
  info.resources = node.info.resources;
  if (!node.dead) info.free = ToWire(FreeOf(node));
  info.labels = node.info.labels;
  info.devices = node.info.devices;
  if (turn.now > node.last_heard) {
    info.heard_ms = static_cast<std::uint64_t>(Millis(turn.now - node.last_heard));
  }
  info.python_version = node.info.python_version;
  info.zygote_ready = node.zygote_ready;
  info.preimports = node.preimports;
  info.why = WhatIsWrong(turn, node);
  if (info.why.empty()) info.why = IdleGpusOf(turn, node);
  return info;
}

void OnGetStatus(Turn& turn, const Request& request) {
  wire::ClusterStatus status;
  status.cluster_id = turn.options.cluster;
  status.head_incarnation = turn.state.incarnation;
  status.address = turn.options.address;
  status.pid = turn.options.pid;
  status.up_ms = static_cast<std::uint64_t>(Millis(turn.now - turn.state.started));
  status.version = turn.options.version;
  turn.BeginListing();
  for (const auto& [id, node] : turn.state.nodes) status.nodes.push_back(InfoOf(turn, node));
  std::size_t bytes = 0;
  for (const Launch* launch : LaunchesOfStatus(turn.state)) {
    wire::LaunchInfo info = InfoOf(turn, *launch);
    bytes += BytesOf(info);
    if (bytes > kListBytesMax) break;
    status.launches.push_back(std::move(info));
  }
  for (const auto& [id, actor] : turn.state.actors) status.actor_count += actor.live() ? 1 : 0;
  for (const auto& [id, group] : turn.state.groups) {
    status.group_count += group.live() && !group.spec.gang && group.spec.actor.IsNil() ? 1 : 0;
  }
  turn.Reply(request, std::move(status));
}

void OnListGroups(Turn& turn, const Request& request) {
  turn.BeginListing();
  wire::GroupList list;
  for (const auto& [id, group] : turn.state.groups) {
    if (group.live() || !group.spec.shares) list.groups.push_back(InfoOf(turn, group));
  }
  turn.Reply(request, std::move(list));
}

void OnListEvents(Turn& turn, const Request& request) {
  wire::EventList list;
  list.head_incarnation = turn.state.incarnation;
  const auto& notes = turn.state.history.notes();
  list.events.assign(notes.begin(), notes.end());
  turn.Reply(request, std::move(list));
}

}  // namespace troupe::head
