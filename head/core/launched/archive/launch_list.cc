#include "head/core/launched/archive/launch_list.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "head/core/launched/launch_views.h"
#include "head/core/machine/job_terms.h"

namespace troupe::head {
namespace {

// A filter of launches: those a list is asked for.
class Wanted {
 public:
  explicit Wanted(const wire::ListLaunches& list)
      : list_(list), lower_(absl::AsciiStrToLower(list.prefix)) {}
  bool operator()(const Launch& launch) const {
    if (launch.submitted_us < list_.since_us || (list_.open_only && !launch.open())) return false;
    if (!list_.request.IsNil()) return launch.request == list_.request;
    if (!list_.prefix.empty()) {
      return launch.id.Hex().starts_with(lower_) ||
             JobIdOf(launch.spec).starts_with(list_.prefix);
    }
    const Place before{list_.before_us, list_.before};
    return list_.before.IsNil() || PlaceOf(launch) < before;
  }

  using Place = std::pair<std::uint64_t, LaunchId>;  // when it was submitted, and its id
  static Place PlaceOf(const Launch& launch) { return {launch.submitted_us, launch.id}; }

 private:
  const wire::ListLaunches& list_;
  std::string lower_;
};

}  // namespace

void OnListLaunches(Turn& turn, const Request& request, const wire::ListLaunches& message) {
  turn.BeginListing();
  std::vector<std::pair<Wanted::Place, const Launch*>> wanted;
  const Wanted is_wanted(message);
  for (const auto& [id, launch] : turn.state.launches) {
    if (is_wanted(launch)) wanted.emplace_back(Wanted::PlaceOf(launch), &launch);
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
  // Archived launches are listed only in pages.
  const bool archived =
      message.limit == 0 && !message.open_only && !message.in_memory &&
      !turn.state.tombstone_order.empty();
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
