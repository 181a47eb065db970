#include "head/core/placed/former_lives.h"

#include <algorithm>
#include <chrono>

#include "head/core/placed/actor_places.h"
#include "head/core/placed/views.h"
#include "placement/packer.h"

namespace troupe::head {
namespace {

/// Until all that runs on a node has ended, should it not be heard any more.
std::string SecondsLeft(const Turn& turn, const Node& node) {
  const Instant fence =
      node.dead ? FencedAt(turn, node) : node.last_heard + turn.options.recreate_after;
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(fence - turn.now).count()) + " s";
}

/// Returns true if an actor may have a process, of this life or the one before.
bool MayHaveProcess(const Turn& turn, const Actor& actor) {
  return (actor.live() && !actor.place.node.IsNil()) || MayRun(turn, actor.former);
}

/// Returns true if an actor without a process will get one on the present nodes.
bool CanStart(Turn& turn, const Actor& actor) {
  const Group* group = turn.FindGroup(actor.spec.group);
  if (!actor.spec.group.IsNil()) {
    return group != nullptr && group->live() &&
           (group->state == wire::GroupState::kCreated ||
            placement::EverFits(*ScopeFor(turn, *group), RequestOf(turn, group->spec)));
  }
  return placement::EverFits(*ScopeOfLaunch(turn, actor.launch), PlaceRequestOf(actor.spec));
}

/// Returns true if `actor` may not start yet because `other` has, or had, its name.
bool IsBefore(Turn& turn, const Actor& other, const Actor& actor) {
  if (other.spec.actor == actor.spec.actor) return false;
  if (MayHaveProcess(turn, other)) return true;
  // Calls from before nobody had a handle of the other are still to be done.
  return other.live() && other.ending() && !actor.ending() && CanStart(turn, other);
}

/// The actor for which another one of its name waits; null: it may start.
const Actor* FormerOfThatName(Turn& turn, const Actor& actor) {
  if (actor.spec.name.empty()) return nullptr;
  const State& state = turn.state;
  const auto former = state.former_names.find(ActorNameOf(actor));
  if (former == state.former_names.end()) return nullptr;
  for (const ActorId& id : former->second) {
    const Actor* other = turn.FindActor(id);
    if (other != nullptr && IsBefore(turn, *other, actor)) return other;
  }
  const auto has = state.names.find(former->first);
  const Actor* other = has == state.names.end() ? nullptr : turn.FindActor(has->second);
  return other != nullptr && IsBefore(turn, *other, actor) ? other : nullptr;
}

/// "node b, which is to end it", or until when it may run at the most.
std::string WhereItMayRun(const Turn& turn, const Node& node) {
  const std::string where = "node " + node.name + ", which ";
  if (!node.dead && !node.suspect && !node.session.IsNil()) return where + "is to end it";
  return where + (node.dead ? "is lost" : "does not answer") + ": it is fenced in " +
         SecondsLeft(turn, node) + " at the latest";
}

}  // namespace

bool OutOfReach(Turn& turn, const Actor& actor) {
  if (!actor.live() || actor.place.node.IsNil()) return false;
  const Node* node = turn.SeeNode(actor.place.node);
  return node != nullptr && node->dead;
}

Instant FencedAt(const Turn& turn, const Node& lost) {
  const bool same_clock = lost.heard_boot == turn.options.boot_id && lost.heard_at > Instant{} &&
                          lost.heard_at <= turn.now;
  return (same_clock ? lost.heard_at : turn.state.started) + turn.options.recreate_after;
}

bool MayRun(const Turn& turn, const FormerLife& life) {
  if (life.ended || life.gone) return false;
  const Node* node = turn.SeeNode(life.node);
  if (node == nullptr) return false;
  return !node->dead || (!node->ended && turn.now < FencedAt(turn, *node));
}

bool WaitsForFormerLife(Turn& turn, const Actor& actor) {
  return actor.state == wire::ActorState::kPending &&
         (MayRun(turn, actor.former) || FormerOfThatName(turn, actor) != nullptr);
}

std::string FormerLifeText(Turn& turn, const Actor& actor) {
  if (MayRun(turn, actor.former)) {
    const Node* node = turn.SeeNode(actor.former.node);
    if (!node->dead) return "node " + node->name + " is to end its process of before";
    return "its process may still run on node " + node->name + ", which is lost: for " +
           SecondsLeft(turn, *node) + " more at the most";
  }
  const Actor* other = FormerOfThatName(turn, actor);
  if (other == nullptr) return {};
  const std::string text = "the former actor '" + actor.spec.name + "'";
  const NodeId& place = other->place.node.IsNil() ? other->former.node : other->place.node;
  const Node* node = turn.SeeNode(place);
  if (!MayHaveProcess(turn, *other) || node == nullptr)
    return text + ", which first does what it was asked";
  if (other->ending() || !other->live()) return text + " on " + WhereItMayRun(turn, *node);
  return text + " on node " + node->name;
}

void AwaitFence(Turn& turn, const Node& lost) {
  const Instant due = FencedAt(turn, lost);
  for (const auto& [id, actor] : turn.state.actors) {
    const bool waited_for = actor.former.node == lost.id && MayRun(turn, actor.former);
    if (waited_for || (OutOfReach(turn, actor) && actor.place.node == lost.id))
      turn.Arm(due, TimerKind::kActorRecreate, id);
  }
}

void SettleFormerLives(Turn& turn, const Node& node, const wire::RegisterNode& report) {
  for (auto& [id, actor] : turn.state.actors) {
    const FormerLife& former = actor.former;
    if (former.ended || former.gone || former.node != node.id) continue;
    const bool held =
        std::any_of(report.actors.begin(), report.actors.end(), [&](const wire::HeldActor& each) {
          return each.actor == actor.spec.actor && each.incarnation == former.incarnation;
        });
    if (!held) NoteFormerLifeEnded(turn, node, actor, former.incarnation);
  }
}

void NoteFormerLifeEnded(Turn& turn, const Node& node, Actor& actor, std::uint64_t incarnation) {
  FormerLife& former = actor.former;
  if (former.ended || former.node != node.id || former.incarnation != incarnation) return;
  former.gone = true;
  if (!actor.live()) turn.state.ListFormerName(actor);
  turn.state.dirty = true;
}

}  // namespace troupe::head
