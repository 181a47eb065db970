#include "head/core/launched/owned.h"

#include <vector>

#include "head/core/launched/ending.h"
#include "head/core/placed/actor_lives.h"
#include "head/core/placed/groups.h"

namespace troupe::head {

void EndOwned(Turn& turn, const OwnerId& owner, const std::string& why) {
  Selection owned;
  owned.launch = [&](const Launch& launch) { return launch.owner == owner; };
  owned.actor = [&](const Actor& actor) { return actor.owner == owner; };
  owned.group = [&](const Group& group) { return group.spec.owner == owner; };
  EndAll(turn, owned, why);
}

void EndAll(Turn& turn, const Selection& which, const std::string& why) {
  std::vector<LaunchId> launches;
  for (const auto& [id, launch] : turn.state.launches) {
    if (launch.open() && !launch.spec.detached && which.launch(launch)) launches.push_back(id);
  }
  for (const LaunchId& id : launches) {
    Launch& launch = *turn.FindLaunch(id);
    StopOrder order;
    order.cause = "cancelled: " + why;
    order.grace = StopGrace(launch);
    StopLaunch(turn, launch, order);
  }
  std::vector<ActorId> actors;
  for (const auto& [id, actor] : turn.state.actors) {
    if (actor.live() && !actor.spec.detached && which.actor(actor)) actors.push_back(id);
  }
  for (const ActorId& id : actors)
    EndActorNow(turn, *turn.FindActor(id), wire::FailureKind::kOwnerEnded, why);
  std::vector<GroupId> groups;
  for (const auto& [id, group] : turn.state.groups) {
    if (group.live() && !group.spec.detached && which.group(group)) groups.push_back(id);
  }
  for (const GroupId& id : groups) EndGroup(turn, id, why);
}

}  // namespace troupe::head
