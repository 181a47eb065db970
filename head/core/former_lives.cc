#include "head/core/former_lives.h"

#include <algorithm>
#include <chrono>

#include "head/core/actor_views.h"

namespace troupe::head {
namespace {

bool WaitsForFormerLife(const Actor& actor) {
  return actor.state == wire::ActorState::kPending && actor.restarts > 0 && !actor.former_ended &&
         !actor.former_gone;
}

}  // namespace

Instant FencedAt(const Turn& turn, const Node& lost) {
  const bool same_clock = lost.heard_boot == turn.options.boot_id && lost.heard_at > Instant{} &&
                          lost.heard_at <= turn.now;
  return (same_clock ? lost.heard_at : turn.state.started) + turn.options.recreate_after;
}

bool MayStillRun(const Turn& turn, const Actor& actor) {
  if (!WaitsForFormerLife(actor)) return false;
  const Node* node = turn.SeeNode(actor.failure.node);
  if (node == nullptr) return false;
  return !node->dead || (!node->ended && turn.now < FencedAt(turn, *node));
}

std::string FormerLifeText(const Turn& turn, const Actor& actor) {
  const Node* node = turn.SeeNode(actor.failure.node);
  if (node == nullptr) return {};
  if (!node->dead) return "node " + node->name + " is to end its process of before";
  const auto left = std::chrono::ceil<std::chrono::seconds>(FencedAt(turn, *node) - turn.now);
  return "its process may still run on node " + node->name + ", which is lost: for " +
         std::to_string(left.count()) + " s more at the most";
}

void AwaitFence(Turn& turn, const Node& lost) {
  const Instant due = FencedAt(turn, lost);
  for (const auto& [id, actor] : turn.state.actors) {
    const bool waits = WaitsForFormerLife(actor) && actor.failure.node == lost.id;
    if (waits || (OutOfReach(turn, actor) && actor.place.node == lost.id))
      turn.Arm(due, TimerKind::kActorRecreate, id);
  }
}

void SettleFormerLives(Turn& turn, const Node& node, const wire::RegisterNode& report) {
  for (auto& [id, actor] : turn.state.actors) {
    if (!WaitsForFormerLife(actor) || actor.failure.node != node.id) continue;
    const bool held =
        std::any_of(report.actors.begin(), report.actors.end(), [&](const wire::HeldActor& each) {
          return each.actor == actor.spec.actor && each.incarnation + 1 == actor.incarnation;
        });
    if (!held) NoteFormerLifeEnded(turn, node, actor, actor.incarnation - 1);
  }
}

void NoteFormerLifeEnded(Turn& turn, const Node& node, Actor& actor, std::uint64_t incarnation) {
  if (!WaitsForFormerLife(actor) || actor.failure.node != node.id ||
      incarnation + 1 != actor.incarnation)
    return;
  actor.former_gone = true;
  turn.state.dirty = true;
}

}  // namespace troupe::head
