#include "head/core/placed/rank_shares.h"

#include <utility>

#include "head/core/machine/wire_convert.h"
#include "head/core/placed/group_views.h"

namespace troupe::head {
namespace {

// Bundle i: what node i of the launch holds for the ranks that are meant.
std::vector<wire::Bundle> BundlesOf(const Launch& launch, std::int32_t only) {
  std::vector<wire::Bundle> bundles;
  const Resources per_rank = FromWire(launch.spec.per_rank);
  for (std::size_t i = 0; i < launch.nodes.size(); ++i) {
    std::uint32_t here = 0;
    for (std::size_t r = 0; r < launch.ranks.size(); ++r) {
      const bool meant = only < 0 || static_cast<std::size_t>(only) == r;
      here += meant && launch.ranks[r].node == launch.nodes[i] ? 1 : 0;
    }
    if (here == 0) continue;
    wire::Bundle bundle;
    bundle.index = static_cast<std::uint32_t>(i);
    bundle.resources = ToWire(per_rank.Times(here));
    bundles.push_back(std::move(bundle));
  }
  return bundles;
}

}  // namespace

void OnLeaseShares(Turn& turn, const Request& request, const wire::CreateGroup& message) {
  const Launch* launch = turn.FindLaunch(request.launch);
  if (launch == nullptr || !launch->on_nodes() || launch->epoch != request.epoch) {
    turn.Refuse(request, ErrorCode::kFenced, "the launch this process belongs to is over");
    return;
  }
  if (launch->spec.mode != wire::LaunchMode::kDriver || request.rank != 0) {
    turn.Refuse(request, ErrorCode::kInvalid,
                "the ranks' shares are for the driver, rank 0 of a @ray_launch");
    return;
  }
  const bool known_rank =
      message.share_rank < 0 || static_cast<std::size_t>(message.share_rank) < launch->ranks.size();
  if (message.group.IsNil() || !known_rank || launch->spec.per_rank.empty()) {
    turn.Refuse(request, ErrorCode::kInvalid,
                "a share needs an id, a rank of the launch and resources");
    return;
  }
  wire::GroupSubmitted submitted;
  submitted.group = message.group;
  submitted.strategy = wire::Strategy::kStrictSpread;
  submitted.bundles = BundlesOf(*launch, message.share_rank);
  submitted.owner = request.owner;
  submitted.line = request.line;
  submitted.token = request.token;
  submitted.user = request.user;
  submitted.launch = launch->id;
  submitted.epoch = launch->epoch;
  submitted.parent = launch->group;
  submitted.shares = true;
  submitted.share_rank = message.share_rank;
  submitted.submitted_us = turn.wall_us;
  turn.Append(std::move(submitted));
  Group& group = *turn.FindGroup(message.group);
  group.watchers.insert(request.route);
  turn.Reply(request, wire::GroupUpdate{InfoOf(turn, group)});
  turn.state.dirty = true;
}

}  // namespace troupe::head
