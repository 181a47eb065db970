#include "head/core/placed/actors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "head/core/machine/wire_convert.h"
#include "head/core/nodes/output_routes.h"
#include "head/core/nodes/roles.h"
#include "head/core/nodes/task_lists.h"
#include "head/core/placed/actor_lives.h"
#include "head/core/placed/actor_places.h"
#include "head/core/placed/actor_views.h"
#include "head/core/placed/former_lives.h"
#include "head/core/placed/groups.h"
#include "head/core/placed/people/quotas.h"
#include "head/core/placed/views.h"
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
  if (IsSomebody(turn.state, spec.actor)) {  // the actor's objects would be taken for that one's
    text = "the id " + spec.actor.Hex() + " is taken: a client or a rank has it";
    return ErrorCode::kInvalid;
  }
  text = ObjectionTo(spec.where, {});
  if (!text.empty()) return ErrorCode::kInvalid;
  if (!request.launch.IsNil()) {
    if (spec.detached) {
      text =
          "lifetime=\"detached\" is not possible inside a launch: what its driver makes ends with "
          "it";
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
  text = request.launch.IsNil() ? OverQuota(turn, request.user, FromWire(spec.run_resources)) : "";
  if (!text.empty()) return ErrorCode::kInfeasible;
  const placement::Request wanted = PlaceRequestOf(spec);
  const Scope scope = ScopeOfLaunch(turn, request.launch);
  if (MayWaitForNodes(turn, request, spec.infeasible_waits) || placement::EverFits(*scope, wanted))
    return ErrorCode::kNone;
  text = placement::Explain(*scope, wanted).text;
  return ErrorCode::kInfeasible;
}

void NoteUnwanted(Turn& turn, const Actor& actor) {
  if (!actor.live() || actor.uncounted || actor.unwanted || actor.spec.detached) return;
  wire::ActorHandles handles;
  handles.actor = actor.spec.actor;
  handles.unwanted = true;
  turn.Append(handles);
}

// Somebody has a handle where it is not counted: that nobody has one counted says nothing any more.
void NoteUncounted(Turn& turn, const Actor& actor) {
  if (!actor.live() || actor.uncounted || actor.unwanted) return;
  wire::ActorHandles handles;
  handles.actor = actor.spec.actor;
  handles.uncounted = true;
  turn.Append(handles);
}

}  // namespace

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
      // AN-3. Its maker counts the handle that it gets so; another process is not counted, and
      // cannot know when it is too late.
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
  created.user = request.user;
  created.root = RootOf(turn, request, spec);
  if (spec.shown && created.root == request.owner) ReachRootAt(turn, created.root, request.route);
  if (spec.leased) NoteTaskOwner(turn, request.route);
  created.launch = request.launch;
  created.epoch = request.epoch;
  const bool reserves = !spec.run_resources.empty() && spec.group.IsNil();
  if (reserves) created.group = GroupId::Random(turn.random);
  const GroupId own = created.group;
  turn.Append(std::move(created), payload);
  if (reserves) turn.Append(OwnGroupOf(turn, request, spec, own));
  Actor& actor = *turn.FindActor(spec.actor);
  actor.watchers.insert(request.route);
  ReplyActor(turn, request, actor);
  turn.state.dirty = true;
}

void OnWatchActor(Turn& turn, const Request& request, const wire::WatchActor& message) {
  Actor* actor = turn.FindActor(message.actor);
  if (actor == nullptr) {
    turn.Refuse(request, ErrorCode::kNotFound, "no actor " + message.actor.Hex());
    return;
  }
  if (message.uncounted) NoteUncounted(turn, *actor);
  if (actor->live()) actor->watchers.insert(request.route);
  ReplyActor(turn, request, *actor);
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
    Die(turn, *actor,
        FailureAt(turn, *actor, wire::FailureKind::kKillRequested, "killed before it started"),
        !last, {}, false);
  } else if (actor->live() && !actor->place.node.IsNil()) {
    wire::EndActor end;
    end.actor = message.actor;
    end.incarnation = actor->incarnation;
    end.graceful = message.graceful;
    end.reason = "killed by troupe.kill";
    end.kind = wire::FailureKind::kKillRequested;
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
  if (actor->unwanted && !actor->doomed && !crashed && exception.empty()) {
    failure.kind = wire::FailureKind::kUnreferenced;
    failure.located = false;
    failure.cause = kUnwanted;
  }
  if (failure.cause.empty()) {
    failure.kind = actor->doomed ? wire::FailureKind::kKillRequested : wire::FailureKind::kExited;
    failure.cause = actor->doomed ? "killed" : "its process ended";
  }
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
  if (actor == nullptr || !actor->live() || !actor->spec.leased ||
      actor->incarnation != message.incarnation || actor->place.node != node.id) {
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
    if (actor == nullptr || WaitsForFormerLife(turn, *actor)) continue;
    if (auto place = placer.Choose(*actor)) StartActor(turn, *actor, std::move(*place));
  }
}

void StartActorIn(Turn& turn, const Group& group) {
  Actor* actor = turn.FindActor(group.spec.actor);
  if (actor == nullptr || actor->state != wire::ActorState::kPending || group.places.empty())
    return;
  if (WaitsForFormerLife(turn, *actor)) {  // since the reservation was asked for
    Unplace(turn, *turn.FindGroup(group.spec.group), FormerLifeText(turn, *actor));
    return;
  }
  wire::ActorPlaced place;
  place.node = group.places[0].node;
  place.group = group.spec.group;
  place.attempt = group.attempt;
  place.bundle = static_cast<std::int32_t>(group.places[0].index);
  place.gpu_ids = group.places[0].gpu_ids;
  StartActor(turn, *actor, std::move(place));
}

}  // namespace troupe::head
