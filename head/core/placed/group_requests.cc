#include "head/core/placed/group_requests.h"

#include <string>
#include <utility>

#include "head/core/machine/accounts.h"
#include "head/core/machine/wire_convert.h"
#include "head/core/placed/group_views.h"
#include "head/core/placed/groups.h"
#include "head/core/placed/people/quotas.h"
#include "head/core/placed/rank_shares.h"
#include "head/core/placed/schedule.h"
#include "head/core/placed/views.h"
#include "head/core/placed/waiting.h"
#include "placement/explain.h"
#include "placement/packer.h"

namespace troupe::head {
namespace {

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
  if (request.id != 0) group->watchers.erase(request.route);  // the answer says it
  EndGroup(turn, message.group, "removed");
  turn.Reply(request, wire::GroupUpdate{NewsOf(turn, *turn.FindGroup(message.group))});
}

}  // namespace troupe::head
