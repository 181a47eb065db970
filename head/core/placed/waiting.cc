#include "head/core/placed/waiting.h"

#include <iterator>
#include <set>

#include "head/core/placed/former_lives.h"
#include "head/core/placed/people/fair_queue.h"
#include "head/core/placed/people/quotas.h"
#include "head/core/placed/predecessors.h"
#include "head/core/placed/share_places.h"
#include "head/core/placed/views.h"
#include "placement/explain.h"
#include "placement/packer.h"

namespace troupe::head {
namespace {

std::string RoomMissing(Turn& turn, const Group& group) {
  const placement::Request request = RequestOf(turn, group.spec);
  const auto explain = [&] { return placement::Explain(*ScopeFor(turn, group), request).summary; };
  if (!turn.listing) return explain();
  return turn.listing->Summary(group.spec.parent, request, group.spec.group, explain);
}

}  // namespace

std::string WaitingFor(Turn& turn, const Group& group) {
  if (!group.waiting()) return {};
  const Actor* actor = turn.FindActor(group.spec.actor);
  if (actor != nullptr && WaitsForFormerLife(turn, *actor)) return FormerLifeText(turn, *actor);
  if (WaitsForLaunches(turn, group)) return LaunchesWaitedFor(turn, group);
  if (std::string quota = QuotaWaitedFor(turn, group); !quota.empty()) return quota;
  if (!group.spec.parent.IsNil() && turn.FindGroup(group.spec.parent) == nullptr)
    return "its launch";
  std::string text = group.spec.shares ? SharesWaitingFor(turn, group) : RoomMissing(turn, group);
  if (!group.reason.empty()) text += " (" + group.reason + ")";
  if (const Group* parent = turn.FindGroup(group.spec.parent)) {
    const std::string holders = HoldersIn(turn, *parent);
    if (!holders.empty()) text += "; held by " + holders;
  }
  return text;
}

std::string WhyWaiting(Turn& turn, const Group& group) {
  const Group* parent = turn.FindGroup(group.spec.parent);
  const Actor* actor = turn.FindActor(group.spec.actor);
  const bool waits_for_former = actor != nullptr && WaitsForFormerLife(turn, *actor);
  if (!group.waiting() || group.spec.shares || waits_for_former || WaitsForLaunches(turn, group) ||
      (parent == nullptr && !group.spec.parent.IsNil())) {
    return WaitingFor(turn, group);
  }
  const placement::Request request = RequestOf(turn, group.spec);
  const Scope scope = ScopeFor(turn, group);
  std::string text = placement::Explain(*scope, request).text;
  const std::string quota = QuotaWaitedFor(turn, group);
  if (!quota.empty()) text = quota + "\n" + text;
  const std::uint32_t before = parent == nullptr ? QueuePlace(turn, group) : 0;
  if (before > 0) {
    text += "\n  before it in the queue: " + std::to_string(before);
    if (placement::Pack(*scope, request)) text += "; what would do is kept for the first of them";
  }
  const std::string shares = parent == nullptr ? SharesText(turn, group) : "";
  if (!shares.empty()) text += "\n  " + shares;
  if (group.spec.group == turn.state.queue.keeper) text += "\n  a place is kept for it";
  if (!group.reason.empty()) text += "\n  last attempt: " + group.reason;
  const std::string holders = parent == nullptr ? "" : HoldersIn(turn, *parent);
  if (!holders.empty()) text += "\n  held by " + holders;
  return text;
}

std::uint32_t QueuePlace(const Turn& turn, const Group& group) {
  if (turn.listing) return turn.listing->PlaceOf(group.spec.group);
  const std::set<QueueKey>& queue = turn.state.waiting_groups;
  const auto found = queue.find(group.key());
  if (found == queue.end()) return 0;
  // From both ends: most of those that are asked for stand at one.
  std::uint32_t steps = 0;
  for (auto front = queue.begin(), back = std::prev(queue.end());; ++front, --back, ++steps) {
    if (front == found) return steps;
    if (back == found) return static_cast<std::uint32_t>(queue.size()) - 1 - steps;
  }
}

}  // namespace troupe::head
