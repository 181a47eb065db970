#include "head/core/actors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "head/core/actor_places.h"
#include "head/core/actor_views.h"
#include "head/core/convert.h"
#include "head/core/former_lives.h"
#include "head/core/groups.h"
#include "head/core/outputs.h"
#include "head/core/owners.h"
#include "head/core/roles.h"
#include "head/core/task_lists.h"
#include "head/core/views.h"
#include "placement/explain.h"
#include "placement/packer.h"

namespace troupe::head {
namespace {

constexpr char kUnwanted[] = "all references to the actor were removed";

// Why this can never be; kNone when it can.
ErrorCode Objection(Turn& turn, const Request& request, const wire::ActorSpec& spec,
                    std::string& text) {
  if (spec.actor.IsNil()) {
    text = "an actor needs an id";
    return ErrorCode::kInvalid;
  }
  if (IsSomebody(turn.state, spec.actor)) {  // what it made would be taken for that one's
    text = "the id " + spec.actor.Hex() + " is taken: a client or a rank has it";
    return ErrorCode::kInvalid;
  }
  text = ObjectionTo(spec.where, {});
  if (!text.empty()) return ErrorCode::kInvalid;
  if (!request.launch.IsNil()) {
    if (spec.detached) {
      text = "lifetime=\"detached\" is not possible inside a launch: what its driver makes ends with it";
      return ErrorCode::kInvalid;
    }
    const Launch* launch = turn.FindLaunch(request.launch);
    if (launch == nullptr || !launch->on_nodes() || launch->epoch != request.epoch) {
      text = "the launch this process belongs to is over";
      return ErrorCode::kFenced;
    }
  }
  if (!spec.group.IsNil()) {
    const Group* group = turn.FindGroup(spec.group);
    if (group == nullptr || !group->live() || group->spec.shares) {
      text = "no placement group " + spec.group.Hex();
      return ErrorCode::kNotFound;
    }
    if (!FitsSomeBundle(*group, spec)) {
      text = "no bundle of the placement group can hold " + FromWire(spec.run_resources).Text();
      return ErrorCode::kInfeasible;
    }
    return ErrorCode::kNone;
  }
  const placement::Request wanted = PlaceRequestOf(spec);
  const Scope scope = ScopeOfLaunch(turn, request.launch);
  if (MayWaitForNodes(turn, request, spec.infeasible_waits) || placement::EverFits(*scope, wanted)) return ErrorCode::kNone;
  text = placement::Explain(*scope, wanted).text;
  return ErrorCode::kInfeasible;
}

// So much of the CPUs of a process for tasks is its node's to give, while its task waits.
void Lend(Turn& turn, Node& node, Actor& actor, std::uint64_t cpus) {
  actor.lends = cpus;
  const Group* own = turn.FindGroup(actor.own_group);
  if (own == nullptr) return;  // it is in a bundle, which only the head shares out
  Resources lent;
  lent.Set("CPU", cpus);
  node.holdings.Lend({actor.own_group, own->attempt}, lent);
}

// Journals the death, tells who watches, and what follows from it. Not `ended`: it may still run where it was.
void Die(Turn& turn, Actor& actor, wire::Failure failure, bool restart, std::string exception = {}, bool ended = true) {
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
  actor.former_gone = false;
  actor.lends = 0;
  turn.state.dirty = true;
  PushActor(turn, actor);
  if (!restart && !actor.own_group.IsNil()) EndGroup(turn, actor.own_group, "its actor ended");
  // What the process made goes with the process: the next one knows nothing of it.
  EndOwner(turn, OwnerId(id.hi, id.lo), restart ? "the process that made it ended" : "the actor that made it ended");
  if (restart) return;
  auto& dead = turn.state.dead_actors;
  if (dead.size() <= turn.options.dead_actors_max) return;
  wire::ActorForgotten forgotten;
  forgotten.actor = dead.front();
  turn.Append(forgotten);
}

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
  start.recreatable = actor.launch.IsNil() && (!actor.spec.name.empty() || actor.spec.detached ||
                                               actor.spec.max_restarts != 0);
  start.lends = actor.spec.leased && !actor.own_group.IsNil();
  if (const Node* holder = turn.SeeNode(start.payload.holder)) {
    start.payload.host = holder->info.listen_host;
    start.payload.port = holder->info.listen_port;
    start.payload.unix_path = holder->info.unix_path;
    start.payload.boot_id = holder->info.boot_id;
  }
  turn.ToNode(actor.place.node, std::move(start), actor.payload);
}

void Start(Turn& turn, Actor& actor, wire::ActorPlaced place) {
  place.actor = actor.spec.actor;
  place.incarnation = actor.incarnation;
  turn.Append(std::move(place));
  actor.missing = false;
  SendStart(turn, actor);
  TellOutput(turn, actor, false);
  if (actor.spec.leased) PushActor(turn, actor);  // who leases withdraws what has no room, and lets come what has
}

std::vector<ActorId> Where(const State& state, bool (*wanted)(const Actor&, const Id128&),
                           const Id128& key) {
  std::vector<ActorId> found;
  for (const auto& [id, actor] : state.actors) {
    if (actor.live() && wanted(actor, key)) found.push_back(id);
  }
  return found;
}

void NoteUnwanted(Turn& turn, const Actor& actor) {
  if (!actor.live() || actor.uncounted || actor.unwanted || actor.spec.detached) return;
  wire::ActorHandles handles;
  handles.actor = actor.spec.actor;
  handles.unwanted = true;
  turn.Append(handles);
}

bool OnThatNode(const Actor& actor, const Id128& node) { return Id128(actor.place.node) == node; }
bool InThatGroup(const Actor& actor, const Id128& group) {
  return Id128(actor.place.group) == group || Id128(actor.spec.group) == group;
}
bool OfThatLaunch(const Actor& actor, const Id128& launch) { return Id128(actor.launch) == launch; }

}  // namespace

bool MayRestart(const Actor& actor) {
  return !actor.doomed && !actor.unwanted && (actor.spec.max_restarts < 0 ||
                           actor.restarts < static_cast<std::uint32_t>(actor.spec.max_restarts));
}

void OnCreateActor(Turn& turn, const Request& request, const wire::CreateActor& message,
                   const std::string& payload) {
  const wire::ActorSpec& spec = message.spec;
  Actor* known = turn.FindActor(spec.actor);
  if (known == nullptr && !spec.name.empty()) {
    const Actor* named = FindNamedActor(turn, request.launch, spec.namespace_, spec.name);
    if (named != nullptr && !spec.get_if_exists && named->launch == request.launch) {
      turn.Refuse(request, ErrorCode::kAlreadyExists,
                  "an actor is already " + Called(spec.name, spec.namespace_));
      return;
    }
    if (named != nullptr && spec.get_if_exists) {
      known = turn.FindActor(named->spec.actor);
      // AN-3. Its maker counts the handle that it gets so; another process is not counted, and cannot know when it is too late.
      if (known->owner != request.owner && !known->spec.detached) NoteUncounted(turn, *known);
    }
  }
  if (known != nullptr) {
    if (known->live()) known->watchers.insert(request.route);
    ReplyActor(turn, request, *known);
    return;
  }
  std::string text;
  const ErrorCode objection = Objection(turn, request, spec, text);
  if (objection != ErrorCode::kNone) {
    turn.Refuse(request, objection, text);
    return;
  }
  wire::ActorCreated created;
  created.spec = spec;
  created.owner = spec.detached ? OwnerId() : request.owner;
  created.line = request.line;
  created.token = request.token;
  created.root = RootOf(turn, request, spec);
  if (spec.shown && created.root == request.owner) ReachRootAt(turn, created.root, request.route);
  if (spec.leased) NoteTaskOwner(turn, request.route);
  created.launch = request.launch;
  created.epoch = request.epoch;
  const bool reserves = !spec.run_resources.empty() && spec.group.IsNil();
  if (reserves) created.group = GroupId::Random(turn.random);
  const GroupId own = created.group;
  turn.Append(std::move(created), payload);
  if (reserves) turn.Append(OwnGroupOf(turn, spec, own, request.launch, request.epoch));
  Actor& actor = *turn.FindActor(spec.actor);
  actor.watchers.insert(request.route);
  ReplyActor(turn, request, actor);
  turn.state.dirty = true;
}

void NoteUncounted(Turn& turn, const Actor& actor) {
  if (!actor.live() || actor.uncounted || actor.unwanted) return;
  wire::ActorHandles handles;
  handles.actor = actor.spec.actor;
  handles.uncounted = true;
  turn.Append(handles);
}

void OnKillActor(Turn& turn, const Request& request, const wire::KillActor& message) {
  Actor* actor = turn.FindActor(message.actor);
  if (actor == nullptr) {
    turn.Refuse(request, ErrorCode::kNotFound, "no actor " + message.actor.Hex());
    return;
  }
  if (message.unwanted) {
    NoteUnwanted(turn, *actor);
    ReplyActor(turn, request, *actor);
    return;
  }
  const bool last = message.no_restart || !MayRestart(*actor);
  if (actor->live() && last && !actor->doomed) {
    wire::ActorDoomed doomed;
    doomed.actor = message.actor;
    doomed.reason = "killed";
    turn.Append(std::move(doomed));
  }
  if (actor->state == wire::ActorState::kPending) {
    // Not the last one: a restart is used up. What it was before may still run where it was.
    Die(turn, *actor, FailureAt(turn, *actor, "killed before it started"), !last, {}, last || !MayStillRun(turn, *actor));
  } else if (actor->live() && !actor->place.node.IsNil()) {
    wire::EndActor end;
    end.actor = message.actor;
    end.incarnation = actor->incarnation;
    end.graceful = message.graceful;
    end.reason = "killed by troupe.kill";
    turn.ToNode(actor->place.node, std::move(end));
  }
  turn.Reply(request, wire::Ok());
}

void OnActorStarted(Turn& turn, Node& node, const wire::ActorStarted& message) {
  Actor* actor = turn.FindActor(message.actor);
  if (actor == nullptr || !actor->live() || actor->incarnation != message.incarnation ||
      actor->place.node != node.id) {
    TellActorEnded(turn, node.id, message.actor, message.incarnation);
    return;
  }
  if (actor->state == wire::ActorState::kAlive) return;
  if (message.awaits) {
    actor->awaits_at = message.address;
    actor->awaits_at.incarnation = message.incarnation;
    PushActor(turn, *actor);
    return;
  }
  wire::ActorLive live;
  live.actor = message.actor;
  live.incarnation = message.incarnation;
  live.address = message.address;
  live.address.incarnation = message.incarnation;
  turn.Append(std::move(live));
  if (!message.address.repr_name.empty()) TellOutput(turn, *actor, false);
  PushActor(turn, *actor);
}

void OnActorEnded(Turn& turn, Node& node, const wire::ActorEnded& message,
                  const std::string& exception) {
  Actor* actor = turn.FindActor(message.actor);
  if (actor != nullptr) NoteFormerLifeEnded(turn, node, *actor, message.incarnation);
  if (actor == nullptr || !actor->live() || actor->incarnation != message.incarnation ||
      actor->place.node != node.id) {
    return;
  }
  wire::Failure failure = message.failure;
  failure.node = node.id;
  if (failure.node_name.empty()) failure.node_name = node.name;
  if (failure.host.empty()) failure.host = node.info.host;
  const bool crashed = failure.exit_code != 0 || failure.signal != 0;
  if (actor->unwanted && !actor->doomed && !crashed && exception.empty()) failure.cause = kUnwanted;
  if (failure.cause.empty()) failure.cause = actor->doomed ? "killed" : "its process ended";
  const bool constructor = actor->state == wire::ActorState::kStarting && !exception.empty();
  const bool restart = !message.graceful && !constructor && MayRestart(*actor);
  Die(turn, *actor, std::move(failure), restart, exception);
  if (!restart || actor->own_group.IsNil()) return;
  Group* group = turn.FindGroup(actor->own_group);
  if (group == nullptr || group->state != wire::GroupState::kCreated) return;
  if (node.leaving) {
    Unplace(turn, *group, node.name + " leaves");
  } else {
    StartActorIn(turn, *group);
  }
}

void OnActorLends(Turn& turn, Node& node, const wire::ActorLends& message) {
  Actor* actor = turn.FindActor(message.actor);
  if (actor == nullptr || !actor->live() || !actor->spec.leased || actor->incarnation != message.incarnation ||
      actor->place.node != node.id) {
    return;
  }
  if (message.amount > actor->lends) turn.state.dirty = true;
  Lend(turn, node, *actor, message.amount);
  NoteFree(turn, node, message.free, message.free_version);
}

void ForgetLent(Turn& turn, Node& node) {
  for (auto& [id, actor] : turn.state.actors) {
    if (actor.lends > 0 && actor.place.node == node.id) Lend(turn, node, actor, 0);
  }
}

void PlaceActors(Turn& turn) {
  const std::set<ActorId> pending = turn.state.pending_actors;
  if (pending.empty()) return;
  ActorPlacer placer(turn);
  for (const ActorId& id : pending) {
    Actor* actor = turn.FindActor(id);
    if (actor == nullptr || MayStillRun(turn, *actor)) continue;
    if (auto place = placer.Choose(*actor)) Start(turn, *actor, std::move(*place));
  }
}

void StartActorIn(Turn& turn, const Group& group) {
  Actor* actor = turn.FindActor(group.spec.actor);
  if (actor == nullptr || actor->state != wire::ActorState::kPending || group.places.empty()) return;
  wire::ActorPlaced place;
  place.node = group.places[0].node;
  place.group = group.spec.group;
  place.attempt = group.attempt;
  place.bundle = static_cast<std::int32_t>(group.places[0].index);
  place.gpu_ids = group.places[0].gpu_ids;
  Start(turn, *actor, std::move(place));
}

void EndActorNow(Turn& turn, Actor& actor, const std::string& why) {
  if (!actor.live()) return;
  if (!actor.place.node.IsNil()) {
    TellActorEnded(turn, actor.place.node, actor.spec.actor, actor.incarnation);
  }
  Die(turn, actor, FailureAt(turn, actor, why), false);
}

void EndActorsOf(Turn& turn, const LaunchId& launch, const std::string& why) {
  // The nodes end the processes with the epoch: no message of its own for each.
  for (const ActorId& id : Where(turn.state, OfThatLaunch, launch)) {
    Actor* actor = turn.FindActor(id);
    if (actor != nullptr && actor->live()) Die(turn, *actor, FailureAt(turn, *actor, why), false);
  }
}

void EndActorsIn(Turn& turn, const GroupId& group, const std::string& why) {
  for (const ActorId& id : Where(turn.state, InThatGroup, group)) {
    Actor* actor = turn.FindActor(id);
    if (actor != nullptr) EndActorNow(turn, *actor, "its placement group ended: " + why);
  }
}

void LoseActorsIn(Turn& turn, const GroupId& group, const std::string& why) {
  for (const ActorId& id : Where(turn.state, InThatGroup, group)) {
    Actor* actor = turn.FindActor(id);
    if (actor == nullptr || actor->place.node.IsNil() || OutOfReach(turn, *actor)) continue;
    TellActorEnded(turn, actor->place.node, id, actor->incarnation);
    Die(turn, *actor, FailureAt(turn, *actor, why), MayRestart(*actor), {}, false);
  }
}

void LoseActorOfGroup(Turn& turn, const ActorId& id, const std::string& why) {
  Actor* actor = turn.FindActor(id);
  if (actor == nullptr || !actor->live() || actor->place.node.IsNil()) return;
  TellActorEnded(turn, actor->place.node, id, actor->incarnation);
  Die(turn, *actor, FailureAt(turn, *actor, why), MayRestart(*actor), {}, false);
}

void LoseActorsOn(Turn& turn, const NodeId& node, const std::string& why, bool verdict) {
  for (const ActorId& id : Where(turn.state, OnThatNode, node)) {
    Actor* actor = turn.FindActor(id);
    if (actor == nullptr || !actor->live()) continue;
    const bool restart = MayRestart(*actor);
    if (verdict || restart) {
      Die(turn, *actor, FailureAt(turn, *actor, why), restart, {}, verdict);
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
      EndActorNow(turn, *actor, "its node was lost for longer than its lease, and what it had reserved given back");
    }
  }
}

void LoseMissingActors(Turn& turn, const NodeId& node) {
  for (const ActorId& id : Where(turn.state, OnThatNode, node)) {
    Actor* actor = turn.FindActor(id);
    if (actor == nullptr || !actor->missing || actor->state != wire::ActorState::kAlive) continue;
    const bool restart = MayRestart(*actor);
    Die(turn, *actor, FailureAt(turn, *actor, "its node came back and no longer runs it"), restart);
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

void TellActorEnded(Turn& turn, const NodeId& node, const ActorId& actor, std::uint64_t incarnation) {
  wire::EndActor end;
  end.actor = actor;
  end.incarnation = incarnation;
  end.reason = "its time is over";
  turn.ToNode(node, std::move(end));
}

void OnRecreateTimer(Turn& turn, const ActorId& id) {
  Actor* actor = turn.FindActor(id);
  if (actor == nullptr) return;
  const Node* node = turn.SeeNode(actor->place.node);
  if (OutOfReach(turn, *actor) && FencedAt(turn, *node) <= turn.now) {
    Die(turn, *actor, FailureAt(turn, *actor, turn.LossOf(actor->place.node) + ", and has not come back"), false);
  }
  turn.state.dirty = true;
}

void ResumeActorTimers(Turn& turn) {
  for (const auto& [id, node] : turn.state.nodes) {
    if (node.dead && !node.ended) AwaitFence(turn, node);
  }
}

}  // namespace troupe::head
