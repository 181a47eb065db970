#include "head/core/groups.h"

#include <algorithm>
#include <map>
#include <utility>

#include "head/core/actor_losses.h"
#include "head/core/actor_views.h"
#include "head/core/actors.h"
#include "head/core/epochs.h"
#include "head/core/gang/regroup.h"
#include "head/core/gang/replace.h"
#include "head/core/people/accounts.h"
#include "head/core/people/quotas.h"
#include "head/core/rank_shares.h"
#include "head/core/schedule.h"
#include "head/core/views.h"
#include "head/core/wire_convert.h"
#include "placement/explain.h"
#include "placement/packer.h"

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
  if (group.spec.gang) {
    BeginEpoch(turn, group);
  } else if (!group.spec.replaces.empty()) {
    OnSparePlaced(turn, group);
  } else if (!group.spec.actor.IsNil()) {
    StartActorIn(turn, group);
  } else {
    PushGroup(turn, group);
  }
}

/// The changes of a group: followers, and those who asked for it, know the rest.
wire::GroupInfo NewsOf(Turn& turn, const Group& group) {
  wire::GroupInfo news;
  news.group = group.spec.group;
  news.state = group.state;
  news.attempt = group.attempt;
  news.priority = group.spec.priority;
  if (!group.waiting()) {
    news.reason = group.reason;
    // The group was looked at: it has a place among those that wait
  } else if (group.waits_since != Instant{}) {
    if (group.spec.parent.IsNil()) news.queue_place = QueuePlace(turn, group) + 1;
    news.reason = WaitingFor(turn, group);
  }
  return news;
}

const Group* FindByName(const State& state, const LaunchId& scope, const std::string& space,
                        const std::string& name) {
  if (name.empty()) return nullptr;
  for (const auto& [id, group] : state.groups) {
    const wire::GroupSubmitted& spec = group.spec;
    if (group.live() && spec.launch == scope && spec.namespace_ == space && spec.name == name)
      return &group;
  }
  return nullptr;
}

}  // namespace

void OnCreateGroup(Turn& turn, const Request& request, const wire::CreateGroup& message) {
  if (Group* known = turn.FindGroup(message.group)) {
    known->watchers.insert(request.route);
    turn.Reply(request, wire::GroupUpdate{NewsOf(turn, *known)});
    return;
  }
  if (message.shares) {
    OnLeaseShares(turn, request, message);
    return;
  }
  if (message.group.IsNil() || message.bundles.empty()) {
    turn.Refuse(request, ErrorCode::kInvalid, "a placement group needs an id and a bundle");
    return;
  }
  if (message.detached && !request.launch.IsNil()) {
    turn.Refuse(request, ErrorCode::kInvalid,
                "lifetime=\"detached\" is not possible inside a launch: what its driver makes ends "
                "with it");
    return;
  }
  const std::string objection = ObjectionTo(message.where, message.bundles);
  if (!objection.empty()) {
    turn.Refuse(request, ErrorCode::kInvalid, objection);
    return;
  }
  if (FindByName(turn.state, request.launch, message.namespace_, message.name) != nullptr) {
    turn.Refuse(request, ErrorCode::kAlreadyExists,
                "a placement group is already " + Called(message.name, message.namespace_));
    return;
  }
  wire::GroupSubmitted submitted;
  submitted.group = message.group;
  submitted.name = message.name;
  submitted.namespace_ = message.namespace_;
  submitted.strategy = message.strategy;
  submitted.bundles = message.bundles;
  submitted.where = message.where;
  submitted.priority = message.priority;
  submitted.owner = message.detached ? OwnerId() : request.owner;
  submitted.line = request.line;
  submitted.token = request.token;
  submitted.user = request.user;
  submitted.detached = message.detached;
  submitted.launch = request.launch;
  submitted.epoch = request.epoch;
  submitted.submitted_us = turn.wall_us;
  if (const Launch* launch = turn.FindLaunch(request.launch)) submitted.parent = launch->group;
  const Scope scope = ScopeIn(turn, turn.FindGroup(submitted.parent));
  const placement::Request wanted = RequestOf(turn, submitted);
  submitted.infeasible_waits = MayWaitForNodes(turn, request, message.infeasible_waits);
  if (!submitted.infeasible_waits && !placement::EverFits(*scope, wanted)) {
    turn.Refuse(request, ErrorCode::kInfeasible, placement::Explain(*scope, wanted).text);
    return;
  }
  const std::string over = submitted.parent.IsNil()
                               ? OverQuota(turn, request.user, WantedBy(submitted))
                               : "";
  if (!over.empty()) {
    turn.Refuse(request, ErrorCode::kInfeasible, over);
    return;
  }
  turn.Append(std::move(submitted));
  Group& group = *turn.FindGroup(message.group);
  group.watchers.insert(request.route);
  turn.state.dirty = true;
  turn.Reply(request, wire::GroupUpdate{NewsOf(turn, group)});
}

void OnGetGroup(Turn& turn, const Request& request, const wire::GetGroup& message) {
  GroupId id = message.group;
  if (const Launch* launch = turn.FindLaunch(message.launch)) id = launch->group;
  if (const Actor* actor = turn.FindActor(message.actor)) {
    id = actor->own_group.IsNil() ? actor->spec.group : actor->own_group;
  }
  for (const LaunchId& scope : {request.launch, LaunchId()}) {
    const Group* const named = FindByName(turn.state, scope, message.namespace_, message.name);
    if (id.IsNil() && named != nullptr) id = named->spec.group;
  }
  Group* group = turn.FindGroup(id);
  if (group == nullptr) {
    turn.Refuse(
        request, ErrorCode::kNotFound,
        "no placement group " + (message.name.empty() ? message.group.Hex()
                                                      : Called(message.name, message.namespace_)));
    return;
  }
  if (message.watch) group->watchers.insert(request.route);
  // so that the answer need not say why it waits when it does not
  if (group->waiting()) Schedule(turn);
  wire::GroupInfo info = InfoOf(turn, *group);
  if (message.explain) info.reason = WhyWaiting(turn, *group);
  turn.Reply(request, wire::GroupUpdate{std::move(info)});
}

void OnRemoveGroup(Turn& turn, const Request& request, const wire::RemoveGroup& message) {
  Group* group = turn.FindGroup(message.group);
  if (group == nullptr) {
    turn.Refuse(request, ErrorCode::kNotFound, "no placement group " + message.group.Hex());
    return;
  }
  if (group->spec.gang || !group->spec.actor.IsNil()) {
    turn.Refuse(request, ErrorCode::kInvalid,
                "a launch's or an actor's own reservation ends with it");
    return;
  }
  if (request.id != 0) group->watchers.erase(request.route);  // reported by its answer
  EndGroup(turn, message.group, "removed");
  turn.Reply(request, wire::GroupUpdate{NewsOf(turn, *turn.FindGroup(message.group))});
}

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
  if (group->spec.gang && FailEpochOfGroup(turn, id, why)) return;
  if (!group->attempting && group->state != wire::GroupState::kCreated) return;
  if (!group->spec.replaces.empty() && !group->attempting) return LoseSpare(turn, *group, why);
  if (!group->spec.actor.IsNil() && !group->attempting) {
    const Actor* actor = turn.FindActor(group->spec.actor);
    // The actor may run there: nothing is reserved elsewhere for it
    if (actor != nullptr && OutOfReach(turn, *actor)) return;
    LoseActorOfGroup(turn, group->spec.actor, kind, why);
    group = turn.FindGroup(id);
    if (group == nullptr || group->places.empty()) return;
  }
  LoseActorsIn(turn, id, kind, why);
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
  if (group->spec.actor.IsNil()) EndActorsIn(turn, id, why);
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

void PushGroup(Turn& turn, const Group& group) {
  if (group.watchers.empty()) return;
  const wire::GroupInfo news = NewsOf(turn, group);
  for (const Route& route : group.watchers) turn.SendTo(route, wire::GroupUpdate{news});
}

wire::GroupInfo InfoOf(Turn& turn, const Group& group) {
  wire::GroupInfo info = NewsOf(turn, group);
  info.name = group.spec.name;
  info.strategy = group.spec.strategy;
  if (group.state == wire::GroupState::kCreated) info.places = group.places;
  info.bundles = group.spec.bundles;
  info.launch = group.spec.launch;
  info.shares = group.spec.shares;
  info.share_rank = group.spec.share_rank;
  info.user = turn.state.users.Named(group.spec.user);
  info.gang = group.spec.gang;
  info.actor = group.spec.actor;
  return info;
}

}  // namespace troupe::head
