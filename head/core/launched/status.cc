#include "head/core/launched/status.h"

#include <utility>
#include <vector>

#include "head/core/launched/archive/launch_list.h"
#include "head/core/launched/launch_views.h"
#include "head/core/nodes/node_views.h"
#include "head/core/placed/group_views.h"

namespace troupe::head {
namespace {

// The open ones and, behind them, the latest that are over.
std::vector<const Launch*> LaunchesOfStatus(const State& state) {
  constexpr std::size_t kEndedMax = 1000;
  std::vector<const Launch*> listed;
  for (const auto& [id, launch] : state.launches) {
    if (launch.open()) listed.push_back(&launch);
  }
  for (const LaunchId& id : state.ended.Latest(kEndedMax)) listed.push_back(&state.launches.at(id));
  return listed;
}

}  // namespace

void OnGetStatus(Turn& turn, const Request& request) {
  wire::ClusterStatus status;
  status.cluster_id = turn.options.cluster;
  status.head_incarnation = turn.state.incarnation;
  status.address = turn.options.address;
  status.pid = turn.options.pid;
  status.up_ms = static_cast<std::uint64_t>(Millis(turn.now - turn.state.started));
  status.version = turn.options.version;
  turn.BeginListing();
  for (const auto& [id, node] : turn.state.nodes) status.nodes.push_back(InfoOf(turn, node));
  std::size_t bytes = 0;
  for (const Launch* launch : LaunchesOfStatus(turn.state)) {
    wire::LaunchInfo info = InfoOf(turn, *launch);
    bytes += BytesOf(info);
    if (bytes > kListBytesMax) break;
    status.launches.push_back(std::move(info));
  }
  for (const auto& [id, actor] : turn.state.actors) status.actor_count += actor.live() ? 1 : 0;
  for (const auto& [id, group] : turn.state.groups) {
    status.group_count += group.live() && !group.spec.gang && group.spec.actor.IsNil() ? 1 : 0;
  }
  turn.Reply(request, std::move(status));
}

void OnListGroups(Turn& turn, const Request& request) {
  turn.BeginListing();
  wire::GroupList list;
  for (const auto& [id, group] : turn.state.groups) {
    if (group.live() || !group.spec.shares) list.groups.push_back(InfoOf(turn, group));
  }
  turn.Reply(request, std::move(list));
}

void OnListEvents(Turn& turn, const Request& request) {
  wire::EventList list;
  list.head_incarnation = turn.state.incarnation;
  const auto& notes = turn.state.history.notes();
  list.events.assign(notes.begin(), notes.end());
  turn.Reply(request, std::move(list));
}

}  // namespace troupe::head
