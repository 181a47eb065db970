#include "head/core/views.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>
#include <utility>

#include "head/core/former_lives.h"
#include "head/core/gang/shape.h"
#include "head/core/jobs/jobs.h"
#include "head/core/people/fair_queue.h"
#include "head/core/people/quotas.h"
#include "head/core/rank_shares.h"
#include "head/core/roster.h"
#include "head/core/wire_convert.h"
#include "placement/explain.h"
#include "placement/fabric.h"
#include "placement/packer.h"

namespace troupe::head {
namespace {

// Selector keys for a node's address and for the node itself, unless the node has a label of that
// name.
constexpr char kAddressLabel[] = "node_ip";
constexpr char kNodeLabel[] = "ray.io/node-id";

std::string ClosedBecause(const Turn& turn, const Node& node) {
  const std::string why = WhatIsWrong(turn, node);
  if (!node.reported) return why;
  if (node.suspect) return "suspect: " + why;
  return node.draining || node.leaving ? "draining: " + why : why;
}

placement::NodeView ViewOf(const Turn& turn, const Node& node) {
  placement::NodeView view;
  view.id = node.id;
  view.name = node.name;
  view.total = node.total;
  view.free = FreeOf(node);
  view.labels = LabelsFromWire(node.info.labels);
  view.labels.emplace(kAddressLabel, node.info.listen_host);
  view.labels.emplace(kNodeLabel, node.id.Hex());
  view.closed = ClosedBecause(turn, node);
  return view;
}

}  // namespace

std::string Called(const std::string& name, const std::string& space) {
  return "called '" + name + "'" + (space.empty() ? "" : " in namespace '" + space + "'");
}

std::string WhatIsWrong(const Turn& turn, const Node& node) {
  if (node.dead) return node.why;
  if (!node.reported) return "not heard of since the head's restart";
  if (!node.suspect && node.draining) return node.why;
  if (!node.suspect && node.leaving) return "its worker was told to end";
  if (!node.suspect) return node.session.IsNil() ? "disconnected" : "";
  char text[64];
  std::snprintf(text, sizeof text, "not heard of for %.1f s", Seconds(turn.now - node.last_heard));
  return text + WhatItsWorkerDoes(node);
}

Resources FreeOf(const Node& node) {
  Resources free = node.total;
  free.Subtract(node.missing);
  free.Subtract(node.holdings.taken());
  return free;
}

placement::ClusterIndex& ClusterOf(Turn& turn) {
  std::set<NodeId> again = turn.touched_nodes;  // nodes that may change yet
  for (const NodeId& id : turn.state.changed_nodes) {
    const auto found = turn.state.nodes.find(id);
    if (found == turn.state.nodes.end() || found->second.dead) {
      turn.state.cluster.Erase(id);
      continue;
    }
    turn.state.cluster.Put(ViewOf(turn, found->second));
    if (found->second.suspect) again.insert(id);  // for how long changes
  }
  turn.state.changed_nodes = std::move(again);
  return turn.state.cluster;
}

std::vector<placement::NodeView> GroupView(Turn& turn, const Group& parent) {
  std::map<NodeId, Resources> totals;
  for (const wire::BundlePlace& place : parent.places) {
    totals[place.node].Add(FromWire(place.resources));
  }
  std::vector<placement::NodeView> views;
  for (const auto& [id, total] : totals) {
    const Node* node = turn.SeeNode(id);
    if (node == nullptr || node->dead) continue;
    // A node that was lost and is there again holds nothing of it.
    if (node->holdings.count({parent.spec.group, parent.attempt}) == 0) continue;
    placement::NodeView view = ViewOf(turn, *node);
    view.total = total;
    view.free = total;
    for (const auto& [lease, holding] : node->holdings) {
      if (holding.parent == parent.spec.group) view.free.Subtract(holding.takes());
    }
    views.push_back(std::move(view));
  }
  return views;
}

bool MayWaitForNodes(const Turn& turn, const Request& request, bool asked) {
  return request.launch.IsNil() && (asked || turn.options.infeasible_waits);
}

Scope ScopeIn(Turn& turn, const Group* parent) {
  return parent == nullptr ? Scope(ClusterOf(turn)) : Scope(GroupView(turn, *parent));
}

Scope ScopeFor(Turn& turn, const Group& group) {
  const Group* parent = turn.FindGroup(group.spec.parent);
  if (parent == nullptr && !group.spec.parent.IsNil())
    return Scope(std::vector<placement::NodeView>{});
  return ScopeIn(turn, parent);
}

placement::Request RequestOf(const Turn& turn, const wire::GroupSubmitted& spec) {
  placement::Request request;
  request.strategy = FromWire(spec.strategy);
  if (!spec.gpu_type.empty()) request.labels["gpu_type"] = spec.gpu_type;
  request.node = spec.node;
  request.node_soft = spec.node_soft;
  for (const wire::Bundle& bundle : spec.bundles) {
    request.bundles.push_back(FromWire(bundle.resources));
  }
  Restrict(request, spec.where, spec.bundles);
  const auto launch = turn.state.launches.find(spec.launch);
  if (spec.gang && launch != turn.state.launches.end())
    request.bundles = GangBundlesOf(launch->second.spec);
  return request;
}

placement::Request RequestOf(const wire::LaunchSpec& spec) {
  placement::Request request;
  request.strategy = FromWire(GangStrategyOf(spec));
  if (!spec.gpu_type.empty()) request.labels["gpu_type"] = spec.gpu_type;
  Restrict(request, spec.where, {});
  request.bundles = GangBundlesOf(spec);
  return request;
}

namespace {

std::string RoomMissing(Turn& turn, const Group& group) {
  const placement::Request request = RequestOf(turn, group.spec);
  const auto explain = [&] { return placement::Explain(*ScopeFor(turn, group), request).summary; };
  if (!turn.listing) return explain();
  return turn.listing->Summary(group.spec.parent, request, group.spec.group, explain);
}

// Returns the fabric that the node reported when it joined; empty for an unknown node.
placement::Fabric FabricOf(const Node* node) {
  placement::Fabric fabric;
  if (node == nullptr) return fabric;
  for (const wire::Label& label : node->info.labels) {
    if (label.key == placement::kFabricLabel) fabric = placement::ParseFabric(label.value);
  }
  return fabric;
}

}  // namespace

LaunchNetworks NetworksOf(Turn& turn, const Launch& launch) {
  LaunchNetworks networks;
  networks.rdma_ports.resize(launch.nodes.size());
  if (launch.nodes.size() < 2) return networks;
  std::vector<placement::Fabric> fabrics;
  std::set<std::string> addresses;
  for (const NodeId& id : launch.nodes) {
    const Node* node = turn.SeeNode(id);
    fabrics.push_back(FabricOf(node));
    if (node != nullptr) addresses.insert(node->info.listen_host);
    for (const placement::NetworkInterface& each : fabrics.back().interfaces) {
      for (const std::string& address : each.addresses)
        addresses.insert(address.substr(0, address.find('/')));
    }
  }
  if (FromWire(launch.spec.per_rank).Get("GPU") > 0)
    networks.rdma_ports = placement::ReachingPorts(fabrics);
  if (launch.spec.on_rank_death == wire::RankDeath::kReplace)
    addresses.insert(placement::kStorePeersMore);
  for (const std::string& each : addresses)
    networks.store_peers += (networks.store_peers.empty() ? "" : " ") + each;
  return networks;
}

std::string WaitingFor(Turn& turn, const Group& group) {
  if (!group.waiting()) return {};
  const Actor* actor = turn.FindActor(group.spec.actor);
  if (actor != nullptr && WaitsForFormerLife(turn, *actor)) return FormerLifeText(turn, *actor);
  if (WaitsForLaunches(turn, group)) return LaunchesWaitedFor(turn, group);
  if (std::string quota = QuotaWaitedFor(turn, group); !quota.empty()) return quota;
  if (!group.spec.parent.IsNil() && turn.FindGroup(group.spec.parent) == nullptr)
    return "its launch";
  std::string text = group.spec.shares ? SharesWaitingFor(turn, group) : RoomMissing(turn, group);
  if (!group.reason.empty()) text += " (" + group.reason + ")";
  if (const Group* parent = turn.FindGroup(group.spec.parent)) {
    const std::string holders = HoldersIn(turn, *parent);
    if (!holders.empty()) text += "; held by " + holders;
  }
  return text;
}

std::string WhyWaiting(Turn& turn, const Group& group) {
  const Group* parent = turn.FindGroup(group.spec.parent);
  const Actor* actor = turn.FindActor(group.spec.actor);
  const bool waits_for_former = actor != nullptr && WaitsForFormerLife(turn, *actor);
  if (!group.waiting() || group.spec.shares || waits_for_former || WaitsForLaunches(turn, group) ||
      (parent == nullptr && !group.spec.parent.IsNil())) {
    return WaitingFor(turn, group);
  }
  const placement::Request request = RequestOf(turn, group.spec);
  const Scope scope = ScopeFor(turn, group);
  std::string text = placement::Explain(*scope, request).text;
  const std::string quota = QuotaWaitedFor(turn, group);
  if (!quota.empty()) text = quota + "\n" + text;
  const std::uint32_t before = parent == nullptr ? QueuePlace(turn, group) : 0;
  if (before > 0) {
    text += "\n  before it in the queue: " + std::to_string(before);
    if (placement::Pack(*scope, request)) text += "; what would do is kept for the first of them";
  }
  const std::string shares = parent == nullptr ? SharesText(turn, group) : "";
  if (!shares.empty()) text += "\n  " + shares;
  if (group.spec.group == turn.state.queue.keeper) text += "\n  a place is kept for it";
  if (!group.reason.empty()) text += "\n  last attempt: " + group.reason;
  const std::string holders = parent == nullptr ? "" : HoldersIn(turn, *parent);
  if (!holders.empty()) text += "\n  held by " + holders;
  return text;
}

std::uint32_t QueuePlace(const Turn& turn, const Group& group) {
  if (turn.listing) return turn.listing->PlaceOf(group.spec.group);
  const std::set<QueueKey>& queue = turn.state.waiting_groups;
  const auto found = queue.find(group.key());
  if (found == queue.end()) return 0;
  // From both ends: most of those that are asked for stand at one.
  std::uint32_t steps = 0;
  for (auto front = queue.begin(), back = std::prev(queue.end());; ++front, --back, ++steps) {
    if (front == found) return steps;
    if (back == found) return static_cast<std::uint32_t>(queue.size()) - 1 - steps;
  }
}

}  // namespace troupe::head
