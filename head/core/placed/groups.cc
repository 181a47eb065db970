#include "head/core/placed/groups.h"

#include <algorithm>
#include <map>
#include <utility>

#include "head/core/machine/wire_convert.h"
#include "head/core/nodes/node_views.h"
#include "head/core/placed/former_lives.h"
#include "head/core/placed/group_views.h"

namespace troupe::head {
namespace {

std::set<NodeId> NodesOf(const std::vector<wire::BundlePlace>& places) {
  std::set<NodeId> nodes;
  for (const wire::BundlePlace& place : places) nodes.insert(place.node);
  return nodes;
}

void SendReserve(Turn& turn, const Group& group, const NodeId& node) {
  wire::Reserve reserve;
  reserve.group = group.spec.group;
  reserve.attempt = group.attempt;
  reserve.parent = group.spec.parent;
  for (const wire::BundlePlace& place : group.places) {
    if (place.node != node) continue;
    wire::Bundle bundle;
    bundle.index = place.index;
    bundle.resources = place.resources;
    reserve.bundles.push_back(std::move(bundle));
  }
  turn.ToNode(node, std::move(reserve));
}

void SendRelease(Turn& turn, const GroupId& group, std::uint64_t attempt, const NodeId& node) {
  wire::Release release;
  release.group = group;
  release.attempt = attempt;
  turn.ToNode(node, std::move(release));
}

void Placed(Turn& turn, Group& group) {
  wire::GroupPlaced placed;
  placed.group = group.spec.group;
  placed.attempt = group.attempt;
  placed.places = group.places;
  turn.Append(std::move(placed));
  group.refusals = 0;
  group.waits_since = Instant{};
  // Some may wait for it, to be in it.
  if (group.spec.gang || !turn.state.pending_actors.empty()) turn.state.dirty = true;
  turn.Happened(fact::GroupPlaced{group});
}

}  // namespace

void StartAttempt(Turn& turn, Group& group, std::vector<wire::BundlePlace> places) {
  wire::GroupAttempted attempted;
  attempted.group = group.spec.group;
  attempted.attempt = group.attempt + 1;
  attempted.places = std::move(places);
  turn.Append(std::move(attempted));
  group.answered.clear();
  for (const NodeId& node : NodesOf(group.places)) SendReserve(turn, group, node);
}

void OnReserveReply(Turn& turn, Node& node, const wire::ReserveReply& message) {
  Group* group = turn.FindGroup(message.group);
  const Lease lease{message.group, message.attempt};
  const bool current = group != nullptr && group->attempting && group->attempt == message.attempt &&
                       node.holdings.count(lease) > 0;
  if (!current) {
    const auto known = node.holdings.find(lease);
    const bool created = known != node.holdings.end() && known->second.state == HoldingState::kHeld;
    if (!message.granted && !created && node.holdings.erase(lease)) turn.state.dirty = true;
    if (message.granted && !created) SendRelease(turn, message.group, message.attempt, node.id);
    NoteFree(turn, node, message.free, message.free_version);
    return;
  }
  if (!message.granted) {
    Unplace(turn, *group, node.name + " refused: " + message.reason);
    node.holdings.erase(lease);
    NoteFree(turn, node, message.free, message.free_version);
    return;
  }
  for (const wire::BundleGrant& grant : message.grants) {
    for (wire::BundlePlace& place : group->places) {
      if (place.node == node.id && place.index == grant.index) place.gpu_ids = grant.gpu_ids;
    }
  }
  group->answered.insert(node.id);
  NoteFree(turn, node, message.free, message.free_version);
  if (group->answered == NodesOf(group->places)) Placed(turn, *group);
}

void OnReleased(Turn& turn, Node& node, const wire::Released& message) {
  const Lease lease{message.group, message.attempt};
  const auto known = node.holdings.find(lease);
  if (known != node.holdings.end() && known->second.state == HoldingState::kReleasing) {
    node.holdings.erase(known);
    // Child leases end with their parent.
    for (auto it = node.holdings.begin();
         node.holdings.HasInside(message.group) && it != node.holdings.end();) {
      const bool child =
          it->second.parent == message.group && it->second.state == HoldingState::kReleasing;
      it = child ? node.holdings.erase(it) : std::next(it);
    }
  }
  NoteFree(turn, node, message.free, message.free_version);
  turn.state.dirty = true;
}

void NoteFree(Turn& turn, Node& node, const std::vector<wire::Resource>& free,
              std::uint64_t version) {
  if (version == 0 || version < node.free_version) return;
  node.free_version = version;
  const Resources before = std::exchange(node.missing, Resources());
  Resources account = FreeOf(node);
  account.Subtract(FromWire(free));
  node.missing = std::move(account);
  if (!before.FitsIn(node.missing)) turn.state.dirty = true;  // something is there again
}

void Unplace(Turn& turn, Group& group, const std::string& why) {
  const std::set<NodeId> nodes = NodesOf(group.places);
  wire::GroupUnplaced unplaced;
  unplaced.group = group.spec.group;
  unplaced.attempt = group.attempt;
  unplaced.reason = why;
  unplaced.wall_us = turn.wall_us;
  turn.Append(std::move(unplaced));
  for (const NodeId& node : nodes) SendRelease(turn, group.spec.group, group.attempt, node);
  const unsigned shift = std::min(group.refusals++, 6u);
  const Duration wait = std::min(turn.options.retry_first * (1 << shift), turn.options.retry_max);
  const auto jitter = static_cast<Duration::rep>(turn.random.Next() %
                                                 static_cast<std::uint64_t>(wait.count() / 2 + 1));
  group.retry_at = turn.now + wait / 2 + Duration(jitter);
  turn.Arm(group.retry_at, TimerKind::kGroupRetry, group.spec.group);
  turn.state.dirty = true;
}

void LoseBundles(Turn& turn, const GroupId& id, wire::FailureKind kind, const std::string& why) {
  Group* group = turn.FindGroup(id);
  if (group == nullptr || !group->live() || group->places.empty()) return;
  if (group->spec.gang) {
    Launch* launch = turn.FindLaunch(group->spec.launch);
    if (launch != nullptr && launch->on_nodes())
      return turn.Happened(fact::GangLost{*launch, why});
  }
  if (!group->attempting && group->state != wire::GroupState::kCreated) return;
  if (!group->spec.replaces.empty() && !group->attempting)
    return turn.Happened(fact::SpareLost{*group, why});
  if (!group->spec.actor.IsNil() && !group->attempting) {
    const Actor* actor = turn.FindActor(group->spec.actor);
    // The actor may run there: nothing is reserved elsewhere for it
    if (actor != nullptr && OutOfReach(turn, *actor)) return;
  }
  turn.Happened(fact::PlacesLost{id, kind, why});
  group = turn.FindGroup(id);
  if (group == nullptr || group->places.empty()) return;
  Unplace(turn, *group, why);
  PushGroup(turn, *group);
}

void EndGroup(Turn& turn, const GroupId& id, const std::string& why) {
  Group* group = turn.FindGroup(id);
  if (group == nullptr || !group->live()) return;
  if (group->spec.gang) {  // nothing else has reservations inside
    std::vector<GroupId> children;
    for (const auto& [child_id, child] : turn.state.groups) {
      if (child.spec.parent == id && child.live()) children.push_back(child_id);
    }
    for (const GroupId& child : children) EndGroup(turn, child, why);
  }
  if (group->spec.actor.IsNil()) turn.Happened(fact::GroupEnds{id, why});
  group = turn.FindGroup(id);
  if (group == nullptr || !group->live()) return;
  const std::set<NodeId> nodes = NodesOf(group->places);
  const std::uint64_t attempt = group->attempt;
  wire::GroupEnded ended;
  ended.group = id;
  ended.reason = why;
  turn.Append(std::move(ended));
  for (const NodeId& node : nodes) SendRelease(turn, id, attempt, node);
  // A client that gives shares back has its answer, and watches them no longer.
  const Group* left = turn.FindGroup(id);
  if (left != nullptr && !left->spec.shares) PushGroup(turn, *left);
  turn.state.dirty = true;
}

void AskAgain(Turn& turn, const GroupId& id, const NodeId& node) {
  const Group* group = turn.FindGroup(id);
  if (group != nullptr && group->attempting) SendReserve(turn, *group, node);
}

}  // namespace troupe::head
