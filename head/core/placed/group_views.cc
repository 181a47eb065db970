#include "head/core/placed/group_views.h"

#include "head/core/placed/waiting.h"

namespace troupe::head {

wire::GroupInfo NewsOf(Turn& turn, const Group& group) {
  wire::GroupInfo news;
  news.group = group.spec.group;
  news.state = group.state;
  news.attempt = group.attempt;
  news.priority = group.spec.priority;
  if (!group.waiting()) {
    news.reason = group.reason;
    // a pass has looked at it: it has a place among those that wait
  } else if (group.waits_since != Instant{}) {
    if (group.spec.parent.IsNil()) news.queue_place = QueuePlace(turn, group) + 1;
    news.reason = WaitingFor(turn, group);
  }
  return news;
}

void PushGroup(Turn& turn, const Group& group) {
  if (group.watchers.empty()) return;
  const wire::GroupInfo news = NewsOf(turn, group);
  for (const Route& route : group.watchers) turn.SendTo(route, wire::GroupUpdate{news});
}

wire::GroupInfo InfoOf(Turn& turn, const Group& group) {
  wire::GroupInfo info = NewsOf(turn, group);
  info.name = group.spec.name;
  info.strategy = group.spec.strategy;
  if (group.state == wire::GroupState::kCreated) info.places = group.places;
  info.bundles = group.spec.bundles;
  info.launch = group.spec.launch;
  info.shares = group.spec.shares;
  info.share_rank = group.spec.share_rank;
  info.user = turn.state.users.Named(group.spec.user);
  info.gang = group.spec.gang;
  info.actor = group.spec.actor;
  return info;
}

}  // namespace troupe::head
