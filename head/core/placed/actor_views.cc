#include "head/core/placed/actor_views.h"

#include <utility>

#include "head/core/placed/actor_places.h"
#include "head/core/placed/former_lives.h"
#include "head/core/placed/room_notices.h"
#include "head/core/placed/views.h"
#include "head/core/placed/waiting.h"
#include "placement/explain.h"

namespace troupe::head {

const Actor* FindNamedActor(Turn& turn, const LaunchId& scope, const std::string& space,
                            const std::string& name) {
  auto found = turn.state.names.find({scope, space, name});
  if (found == turn.state.names.end()) found = turn.state.names.find({LaunchId(), space, name});
  return found == turn.state.names.end() ? nullptr : turn.FindActor(found->second);
}

wire::Failure FailureAt(Turn& turn, const Actor& actor, wire::FailureKind kind,
                        const std::string& cause) {
  wire::Failure failure;
  failure.kind = kind;
  failure.cause = cause;
  failure.node = actor.place.node;
  if (const Node* node = turn.SeeNode(failure.node)) {
    failure.node_name = node->name;
    failure.host = node->info.host;
  }
  return failure;
}

void ReplyActor(Turn& turn, const Request& request, const Actor& actor) {
  turn.Reply(request, wire::ActorUpdate{InfoOf(turn, actor)}, actor.exception);
}

namespace {

/// For who asks in one namespace for what is in another.
std::string OfThatNameElsewhere(Turn& turn, const LaunchId& scope, const std::string& name) {
  for (const auto& [key, actor] : turn.state.names) {
    const auto& [launch, space, called] = key;
    if (called == name && (launch == scope || launch.IsNil()))
      return "; there is one in namespace '" + space + "'";
  }
  return "";
}

}  // namespace

void OnGetNamedActor(Turn& turn, const Request& request, const wire::GetNamedActor& message) {
  const Actor* actor = FindNamedActor(turn, request.launch, message.namespace_, message.name);
  if (actor == nullptr) {
    turn.Refuse(request, ErrorCode::kNotFound,
                "no actor " + Called(message.name, message.namespace_) +
                    OfThatNameElsewhere(turn, request.launch, message.name));
    return;
  }
  ReplyActor(turn, request, *actor);
}

void OnListActors(Turn& turn, const Request& request) {
  turn.BeginListing();
  wire::ActorList list;
  for (const auto& [id, actor] : turn.state.actors) list.actors.push_back(InfoOf(turn, actor));
  turn.Reply(request, std::move(list));
}

void PushActor(Turn& turn, const Actor& actor) {
  if (actor.watchers.empty()) return;
  const wire::ActorInfo info = InfoOf(turn, actor);
  for (const Route& route : actor.watchers) {
    turn.SendTo(route, wire::ActorUpdate{info}, actor.exception);
  }
}

wire::ActorInfo InfoOf(Turn& turn, const Actor& actor) {
  wire::ActorInfo info;
  info.actor = actor.spec.actor;
  info.name = actor.spec.name;
  info.namespace_ = actor.spec.namespace_;
  info.class_name = actor.spec.class_name;
  info.state = actor.state;
  // The address of this life only: the previous life's would make callers reach a process that is
  // gone.
  const bool starts = actor.state == wire::ActorState::kStarting;
  const wire::ActorAddress& where = starts ? actor.awaits_at : actor.address;
  if (where.incarnation == actor.incarnation) info.address = where;
  info.address.incarnation = actor.incarnation;
  info.node = actor.place.node;
  if (!info.node.IsNil()) info.node_name = turn.NodeName(info.node);
  info.failure = actor.failure;
  info.launch = actor.launch;
  info.restarts = actor.restarts;
  info.resources = actor.spec.run_resources;
  info.methods = actor.spec.methods;
  info.unwanted = actor.ending();
  info.room_wanted = RoomIsWanted(turn, actor);
  info.user = actor.user;
  if (OutOfReach(turn, actor)) {
    info.state = wire::ActorState::kUnavailable;
    info.failure =
        FailureAt(turn, actor, wire::FailureKind::kNodeUnreachable, turn.LossOf(actor.place.node));
    return info;
  }
  if (actor.state != wire::ActorState::kPending) return info;
  info.address = wire::ActorAddress();
  // Callers of the previous life learn from the number that it is over
  info.address.incarnation = actor.incarnation;
  const Group* own = turn.FindGroup(actor.own_group);
  const Group* group = turn.FindGroup(actor.spec.group);
  if (WaitsForFormerLife(turn, actor)) {
    info.waiting_for = FormerLifeText(turn, actor);
  } else if (own != nullptr && own->waiting()) {
    info.waiting_for = WaitingFor(turn, *own);
  } else if (group != nullptr) {
    info.waiting_for = "its placement group is " + std::string(NameOf(group->state));
  } else if (own == nullptr) {
    const placement::Request wanted = PlaceRequestOf(actor.spec);
    const auto explain = [&] {
      return placement::Explain(*ScopeOfLaunch(turn, actor.launch), wanted).summary;
    };
    const Launch* launch = turn.FindLaunch(actor.launch);
    const GroupId parent = launch == nullptr ? GroupId() : launch->group;
    info.waiting_for =
        turn.listing ? turn.listing->Summary(parent, wanted, GroupId(actor.spec.actor), explain)
                     : explain();
  }
  return info;
}

}  // namespace troupe::head
