#include "head/core/placed/preempt.h"

#include <string>
#include <utility>

#include "head/core/machine/wire_convert.h"
#include "head/core/placed/actor_lives.h"
#include "head/core/placed/groups.h"

namespace troupe::head {
namespace {

bool CanStartAgain(Turn& turn, const Group& group) {
  if (group.attempting) return true;  // nothing runs in it yet
  if (group.spec.gang || !group.spec.replaces.empty()) {
    const Launch* launch = turn.FindLaunch(group.spec.launch);
    return launch != nullptr && launch->open() && launch->spec.attempts_max > 1;
  }
  if (!group.spec.actor.IsNil()) {
    const Actor* actor = turn.FindActor(group.spec.actor);
    return actor != nullptr && actor->live() && MayRestart(*actor);
  }
  for (const auto& [id, actor] : turn.state.actors) {
    if (actor.live() && actor.place.group == group.spec.group && !MayRestart(actor)) return false;
  }
  return true;
}

std::string NameFor(Turn& turn, const GroupId& id) {
  const Group* group = turn.FindGroup(id);
  if (group == nullptr) return "a request that has ended";
  const std::string priority = " of priority " + std::to_string(group->spec.priority);
  if (group->spec.gang || !group->spec.replaces.empty())
    return "launch " + group->spec.launch.Short() + priority;
  if (!group->spec.actor.IsNil()) return "actor " + group->spec.actor.Short() + priority;
  return "placement group " +
         (group->spec.name.empty() ? id.Short() : "'" + group->spec.name + "'") + priority;
}

}  // namespace

std::vector<placement::Running> TopLevelReservations(Turn& turn) {
  std::vector<placement::Running> all;
  for (const auto& [id, group] : turn.state.groups) {
    if (!group.live() || group.places.empty() || !group.spec.parent.IsNil()) continue;
    placement::Running running;
    running.group = id;
    running.priority = group.spec.priority;
    running.order = group.order;
    running.may_be_ended = CanStartAgain(turn, group);
    for (const wire::BundlePlace& place : group.places) {
      running.holds.emplace_back(place.node, FromWire(place.resources));
    }
    all.push_back(std::move(running));
  }
  for (const auto& [node_id, node] : turn.state.nodes) {
    for (const auto& [lease, holding] : node.holdings) {
      if (holding.state != HoldingState::kReleasing || !holding.parent.IsNil()) continue;
      placement::Running ending;
      ending.group = lease.first;
      ending.ending = true;
      ending.holds.emplace_back(node_id, holding.takes());
      all.push_back(std::move(ending));
    }
  }
  return all;
}

void Preempt(Turn& turn, const GroupId& victim, const GroupId& by) {
  const Group* group = turn.FindGroup(victim);
  if (group == nullptr || !group->live() || group->places.empty()) return;
  const std::string why = "preempted by " + NameFor(turn, by);
  const bool of_ranks = group->spec.gang || !group->spec.replaces.empty();
  Launch* launch = of_ranks ? turn.FindLaunch(group->spec.launch) : nullptr;
  if (launch != nullptr && launch->on_nodes()) {
    turn.Happened(fact::EpochPreempted{*launch, why});
  } else {
    LoseBundles(turn, victim, wire::FailureKind::kPreempted, why);
  }
}

}  // namespace troupe::head
