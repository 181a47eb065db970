#include "head/core/placed/views.h"

#include <map>
#include <set>
#include <utility>

#include "head/core/machine/wire_convert.h"
#include "head/core/nodes/node_views.h"
#include "head/core/placed/gang_shape.h"

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

}  // namespace troupe::head
