#include "head/core/placed/actor_lives.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "head/core/nodes/output_routes.h"
#include "head/core/nodes/owners.h"
#include "head/core/placed/actor_views.h"
#include "head/core/placed/former_lives.h"
#include "head/core/placed/groups.h"

namespace troupe::head {

bool MayRestart(const Actor& actor) {
  return !actor.doomed && !actor.unwanted &&
         (actor.spec.max_restarts < 0 ||
          actor.restarts < static_cast<std::uint32_t>(actor.spec.max_restarts));
}

namespace {

// Returns true if another life of the actor, or another actor of its name, may start while its node
// is lost, so that its node must fence it. A launch that ends with its node ends its actors, and
// their names, with its epoch; one that goes on without that node does not.
bool IsRecreatable(Turn& turn, const Actor& actor) {
  const wire::ActorSpec& spec = actor.spec;
  if (spec.name.empty() && !spec.detached && spec.max_restarts == 0) return false;
  const Launch* launch = turn.FindLaunch(actor.launch);
  return launch == nullptr || launch->spec.on_rank_death != wire::RankDeath::kFail;
}

}  // namespace

void SendStart(Turn& turn, const Actor& actor) {
  wire::StartActor start;
  start.actor = actor.spec.actor;
  start.incarnation = actor.incarnation;
  start.name = actor.spec.name;
  start.class_name = actor.spec.class_name;
  start.namespace_ = actor.spec.namespace_;
  start.group = actor.place.group;
  start.attempt = actor.place.attempt;
  start.bundle = actor.place.bundle;
  start.gpu_ids = actor.place.gpu_ids;
  start.environment = actor.spec.environment;
  start.launch = actor.launch;
  start.epoch = actor.epoch;
  start.max_concurrency = actor.spec.max_concurrency;
  start.payload = actor.spec.payload;
  start.recreatable = IsRecreatable(turn, actor);
  start.lends = actor.spec.leased && !actor.own_group.IsNil();
  if (const Node* holder = turn.SeeNode(start.payload.holder)) {
    start.payload.host = holder->info.listen_host;
    start.payload.port = holder->info.listen_port;
    start.payload.unix_path = holder->info.unix_path;
    start.payload.boot_id = holder->info.boot_id;
  }
  turn.ToNode(actor.place.node, std::move(start), actor.payload);
}

void StartActor(Turn& turn, Actor& actor, wire::ActorPlaced place) {
  place.actor = actor.spec.actor;
  place.incarnation = actor.incarnation;
  turn.Append(std::move(place));
  actor.missing = false;
  SendStart(turn, actor);
  TellOutput(turn, actor, false);
  // A leasing session withdraws requests without room, and lets come those with room
  if (actor.spec.leased) PushActor(turn, actor);
}

void Lend(Turn& turn, Node& node, Actor& actor, std::uint64_t cpus) {
  actor.lends = cpus;
  const Group* own = turn.FindGroup(actor.own_group);
  if (own == nullptr) return;  // in a bundle, which only the head shares out
  Resources lent;
  lent.Set("CPU", cpus);
  node.holdings.Lend({actor.own_group, own->attempt}, lent);
}

namespace {

// The oldest of too many, but for those whose names others wait for: they are fenced in time.
void ForgetDead(Turn& turn) {
  const std::vector<ActorId>& dead = turn.state.dead_actors;
  while (dead.size() > turn.options.dead_actors_max) {
    const auto oldest = std::find_if(dead.begin(), dead.end(), [&turn](const ActorId& id) {
      const Actor* actor = turn.FindActor(id);
      return actor == nullptr || actor->spec.name.empty() || !MayRun(turn, actor->former);
    });
    if (oldest == dead.end()) return;
    wire::ActorForgotten forgotten;
    forgotten.actor = *oldest;
    turn.Append(forgotten);
  }
}

}  // namespace

void Die(Turn& turn, Actor& actor, wire::Failure failure, bool restart, std::string exception,
         bool ended) {
  const ActorId id = actor.spec.actor;
  TellOutput(turn, actor, true, failure.pid);
  Node* node = actor.lends > 0 ? turn.FindNode(actor.place.node) : nullptr;
  if (node != nullptr) Lend(turn, *node, actor, 0);
  wire::ActorDied died;
  died.actor = id;
  died.incarnation = actor.incarnation;
  died.failure = std::move(failure);
  died.restart = restart;
  died.ended = ended;
  turn.Append(std::move(died), std::move(exception));
  actor.missing = false;
  actor.lends = 0;
  turn.state.dirty = true;
  PushActor(turn, actor);
  if (!restart && !actor.own_group.IsNil()) EndGroup(turn, actor.own_group, "its actor ended");
  // Objects that the process made end with the process: the next one knows nothing of them.
  EndOwner(turn, OwnerId(id.hi, id.lo),
           restart ? "the process that made it ended" : "the actor that made it ended");
  if (restart) return;
  ForgetDead(turn);
}

void TellActorEnded(Turn& turn, const NodeId& node, const ActorId& actor,
                    std::uint64_t incarnation) {
  wire::EndActor end;
  end.actor = actor;
  end.incarnation = incarnation;
  end.reason = "its time is over";
  end.kind = wire::FailureKind::kStopped;
  turn.ToNode(node, std::move(end));
}

void EndActorNow(Turn& turn, Actor& actor, wire::FailureKind kind, const std::string& why) {
  if (!actor.live()) return;
  if (!actor.place.node.IsNil()) {
    TellActorEnded(turn, actor.place.node, actor.spec.actor, actor.incarnation);
  }
  Die(turn, actor, FailureAt(turn, actor, kind, why), false, {}, false);
}

}  // namespace troupe::head
