#include "head/core/archive/launch_list.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "head/core/launches.h"

namespace troupe::head {

void OnListLaunches(Turn& turn, const Request& request, const wire::ListLaunches& message) {
  turn.BeginListing();
  using Place = std::pair<std::uint64_t, LaunchId>;  // when it was submitted, and its id
  std::vector<std::pair<Place, const Launch*>> wanted;
  const Place before{message.before_us, message.before};
  for (const auto& [id, launch] : turn.state.launches) {
    const Place place{launch.submitted_us, id};
    const bool later = !message.before.IsNil() && place >= before;
    if (!later && launch.submitted_us >= message.since_us) wanted.emplace_back(place, &launch);
  }
  const std::size_t limit = message.limit == 0
                                ? wanted.size()
                                : std::min<std::size_t>(message.limit, kLaunchPageMax);
  const auto rest = wanted.begin() + static_cast<std::ptrdiff_t>(std::min(limit, wanted.size()));
  std::partial_sort(wanted.begin(), rest, wanted.end(),
                    [](const auto& a, const auto& b) { return a.first > b.first; });
  wire::LaunchList list;
  std::size_t bytes = 0;
  for (const auto& [place, launch] : wanted) {
    if (list.launches.size() == limit) break;
    wire::LaunchInfo info = InfoOf(turn, *launch);
    bytes += BytesOf(info);
    if (bytes > kListBytesMax && !list.launches.empty()) break;
    list.launches.push_back(std::move(info));
  }
  // Those of the archive are told by pages alone.
  const bool archived = message.limit == 0 && !turn.state.tombstone_order.empty();
  list.more = archived || list.launches.size() < wanted.size();
  std::reverse(list.launches.begin(), list.launches.end());
  turn.Reply(request, std::move(list));
}

std::size_t BytesOf(const wire::LaunchInfo& info) {
  constexpr std::size_t kFixed = 1000;
  constexpr std::size_t kOfARank = 250;
  std::size_t bytes = kFixed + info.name.size() + 2 * info.cause.size() +
                      info.failure.traceback.size() + info.failure.log_tail.size() +
                      info.waiting_for.size() + info.rank_infos.size() * kOfARank +
                      info.nodes.size() * sizeof(NodeId);
  for (const wire::RankInfo& rank : info.rank_infos) bytes += rank.cause.size();
  for (const std::string& text : info.travelled) bytes += text.size() + sizeof(std::uint64_t);
  for (const std::string& text : info.not_taken) bytes += text.size() + sizeof(std::uint64_t);
  return bytes;
}

}  // namespace troupe::head
