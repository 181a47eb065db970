#include "head/core/nodes/output_routes.h"

#include <utility>

namespace troupe::head {

OwnerId RootOf(Turn& turn, const Request& request, const wire::ActorSpec& spec) {
  const Actor* maker = turn.FindActor(ActorId(request.owner.hi, request.owner.lo));
  if (maker != nullptr) return maker->root;
  return spec.shown ? request.owner : OwnerId();
}

void ReachRootAt(Turn& turn, const OwnerId& root, const Route& route) {
  if (root.IsNil()) return;
  const auto [known, fresh] = turn.state.output_routes.emplace(root, route);
  if (!fresh && known->second == route) return;
  known->second = route;
  for (const auto& [id, actor] : turn.state.actors) {
    if (actor.root == root) TellOutput(turn, actor, false);
  }
}

void TellOutput(Turn& turn, const Actor& actor, bool ended, std::int32_t pid) {
  if (actor.root.IsNil() || actor.place.node.IsNil()) return;
  const auto route = turn.state.output_routes.find(actor.root);
  if (route == turn.state.output_routes.end()) return;
  wire::OutputOf output;
  output.actor = actor.spec.actor;
  output.node = actor.place.node;
  output.node_name = turn.NodeName(actor.place.node);
  output.class_name = actor.spec.class_name;
  output.name = actor.spec.name;
  output.ended = ended;
  output.pid = pid;
  if (actor.address.incarnation == actor.incarnation) {
    output.repr_name = actor.address.repr_name;
    if (pid == 0) output.pid = actor.address.pid;
  }
  turn.SendTo(route->second, std::move(output));
}

}  // namespace troupe::head
