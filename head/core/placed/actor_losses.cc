#include "head/core/placed/actor_losses.h"

#include <vector>

#include "head/core/placed/actor_lives.h"
#include "head/core/placed/actor_views.h"
#include "head/core/placed/actors.h"
#include "head/core/placed/former_lives.h"

namespace troupe::head {
namespace {

std::vector<ActorId> Where(const State& state, bool (*wanted)(const Actor&, const Id128&),
                           const Id128& key) {
  std::vector<ActorId> found;
  for (const auto& [id, actor] : state.actors) {
    if (actor.live() && wanted(actor, key)) found.push_back(id);
  }
  return found;
}

bool OnThatNode(const Actor& actor, const Id128& node) { return Id128(actor.place.node) == node; }
bool InThatGroup(const Actor& actor, const Id128& group) {
  return Id128(actor.place.group) == group || Id128(actor.spec.group) == group;
}
bool OfThatLaunch(const Actor& actor, const Id128& launch) { return Id128(actor.launch) == launch; }

void LoseReservationOf(Turn& turn, Actor& actor, wire::FailureKind kind, const std::string& why) {
  TellActorEnded(turn, actor.place.node, actor.spec.actor, actor.incarnation);
  Die(turn, actor, FailureAt(turn, actor, kind, why), MayRestart(actor), {}, false);
}

// Actors in it end there, and are made again in other places while restarts are left.
void LoseActorsIn(Turn& turn, const GroupId& group, wire::FailureKind kind,
                  const std::string& why) {
  for (const ActorId& id : Where(turn.state, InThatGroup, group)) {
    Actor* actor = turn.FindActor(id);
    if (actor == nullptr || actor->place.node.IsNil() || OutOfReach(turn, *actor)) continue;
    LoseReservationOf(turn, *actor, kind, why);
  }
}

// The actor's own reservation is lost; it is made again in another while restarts are left.
void LoseActorOfGroup(Turn& turn, const ActorId& id, wire::FailureKind kind,
                      const std::string& why) {
  Actor* actor = turn.FindActor(id);
  if (actor == nullptr || !actor->live() || actor->place.node.IsNil()) return;
  LoseReservationOf(turn, *actor, kind, why);
}

}  // namespace

void EndActorsOf(Turn& turn, const LaunchId& launch, const std::string& why) {
  // The nodes end the processes with the epoch: no message of its own for each.
  for (const ActorId& id : Where(turn.state, OfThatLaunch, launch)) {
    Actor* actor = turn.FindActor(id);
    if (actor == nullptr || !actor->live()) continue;
    Die(turn, *actor, FailureAt(turn, *actor, wire::FailureKind::kLaunchEnded, why), false);
  }
}

void EndActorsIn(Turn& turn, const GroupId& group, const std::string& why) {
  for (const ActorId& id : Where(turn.state, InThatGroup, group)) {
    Actor* actor = turn.FindActor(id);
    if (actor == nullptr) continue;
    EndActorNow(turn, *actor, wire::FailureKind::kGroupRemoved,
                "its placement group ended: " + why);
  }
}

void LoseActorsWithPlaces(Turn& turn, const GroupId& id, wire::FailureKind kind,
                          const std::string& why) {
  const Group* group = turn.FindGroup(id);
  if (!group->spec.actor.IsNil() && !group->attempting) {
    LoseActorOfGroup(turn, group->spec.actor, kind, why);
    group = turn.FindGroup(id);
    if (group == nullptr || group->places.empty()) return;
  }
  LoseActorsIn(turn, id, kind, why);
}

void LoseActorsOn(Turn& turn, const NodeId& node, const std::string& why, bool verdict) {
  const auto kind = verdict ? wire::FailureKind::kNodeLost : wire::FailureKind::kNodeUnreachable;
  for (const ActorId& id : Where(turn.state, OnThatNode, node)) {
    Actor* actor = turn.FindActor(id);
    if (actor == nullptr || !actor->live()) continue;
    const bool restart = MayRestart(*actor);
    if (verdict || restart) {
      Die(turn, *actor, FailureAt(turn, *actor, kind, why), restart, {}, verdict);
    } else {
      PushActor(turn, *actor);
    }
  }
  const Node* lost = turn.SeeNode(node);
  if (!verdict && lost != nullptr) AwaitFence(turn, *lost);
}

void ActorsAreBack(Turn& turn, const NodeId& node) {
  for (const ActorId& id : Where(turn.state, OnThatNode, node)) {
    Actor* actor = turn.FindActor(id);
    if (actor == nullptr || !actor->live()) continue;
    if (actor->place.group.IsNil() && !actor->doomed) {
      PushActor(turn, *actor);
    } else {
      EndActorNow(
          turn, *actor, wire::FailureKind::kReservationLost,
          "its node was lost for longer than its lease, and what it had reserved given back");
    }
  }
}

void LoseMissingActors(Turn& turn, const NodeId& node) {
  for (const ActorId& id : Where(turn.state, OnThatNode, node)) {
    Actor* actor = turn.FindActor(id);
    if (actor == nullptr || !actor->missing) continue;
    const bool restart = MayRestart(*actor);
    Die(turn, *actor,
        FailureAt(turn, *actor, wire::FailureKind::kMissing,
                  "its node came back and no longer runs it"),
        restart);
    if (!restart || actor->own_group.IsNil()) continue;
    const Group* group = turn.FindGroup(actor->own_group);
    if (group != nullptr && group->state == wire::GroupState::kCreated) StartActorIn(turn, *group);
  }
}

void ResumeActorsOn(Turn& turn, const NodeId& node) {
  for (const ActorId& id : Where(turn.state, OnThatNode, node)) {
    Actor* actor = turn.FindActor(id);
    if (actor->doomed) {
      TellActorEnded(turn, node, id, actor->incarnation);
    } else if (actor->state == wire::ActorState::kStarting) {
      SendStart(turn, *actor);
    }
  }
}

void OnRecreateTimer(Turn& turn, const ActorId& id) {
  Actor* actor = turn.FindActor(id);
  if (actor == nullptr) return;
  const Node* node = turn.SeeNode(actor->place.node);
  if (OutOfReach(turn, *actor) && FencedAt(turn, *node) <= turn.now) {
    Die(turn, *actor,
        FailureAt(turn, *actor, wire::FailureKind::kNodeUnreachable,
                  turn.LossOf(actor->place.node) + ", and has not come back"),
        false);
  }
  turn.state.dirty = true;
}

void ResumeActorTimers(Turn& turn) {
  for (const auto& [id, node] : turn.state.nodes) {
    if (node.dead && !node.ended) AwaitFence(turn, node);
  }
}

}  // namespace troupe::head
