#include "head/core/launched/gang/spares.h"

#include <algorithm>
#include <set>
#include <vector>

#include "head/core/launched/ending.h"
#include "head/core/launched/gang/regroup.h"
#include "head/core/launched/gang/replace.h"
#include "head/core/launched/rank_ends.h"
#include "head/core/machine/verdict.h"
#include "head/core/placed/groups.h"

namespace troupe::head {

void OnSparePlaced(Turn& turn, const Group& spare) {
  Launch* launch = turn.FindLaunch(spare.spec.launch);
  const GroupId id = spare.spec.group;
  if (launch == nullptr || launch->epoch != spare.spec.epoch || !Replaces(*launch))
    return EndGroup(turn, id, "its launch needs it no longer");
  const auto empty = [launch](std::uint32_t r) {
    return r < launch->ranks.size() && Died(*launch, r);
  };
  const std::vector<std::uint32_t>& ranks = spare.spec.replaces;
  if (std::none_of(ranks.begin(), ranks.end(), empty))
    return EndGroup(turn, id, "its ranks have other places");
  RefillPlaces(turn, *launch);
}

void LoseSpare(Turn& turn, const Group& spare, const std::string& why) {
  const GroupId id = spare.spec.group;
  const LaunchId launch_id = spare.spec.launch;
  EndGroup(turn, id, why);
  Launch* launch = turn.FindLaunch(launch_id);
  if (launch == nullptr || !launch->on_nodes()) return;
  bool any = false;
  for (std::uint32_t r = 0; r < launch->ranks.size(); ++r) {
    const Rank& rank = launch->ranks[r];
    if (rank.group != id || rank.done.outcome != wire::Outcome::kNone) continue;
    FailRank(turn, *launch,
             FailureOn(turn, *launch, static_cast<std::int32_t>(r),
                       wire::FailureKind::kReservationLost, why));
    any = true;
  }
  if (any) OnRankEnded(turn, *launch);
}

void OnAttemptEndedOn(Turn& turn, Node& node, const wire::EpochEnded& message) {
  Launch* launch = turn.FindLaunch(message.launch);
  if (launch == nullptr || !launch->on_nodes() || launch->epoch != message.epoch) return;
  if (!Replaces(*launch)) return;
  std::set<GroupId> spares;
  for (const Rank& rank : launch->ranks) {
    if (rank.node == node.id && !rank.group.IsNil() && rank.done.outcome == wire::Outcome::kNone)
      spares.insert(rank.group);
  }
  for (const GroupId& id : spares) {
    const Group* spare = turn.FindGroup(id);
    if (spare != nullptr)
      LoseSpare(turn, *spare, "node " + node.name + " has ended this attempt before");
  }
}

}  // namespace troupe::head
