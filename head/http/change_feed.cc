#include "head/http/change_feed.h"

#include <algorithm>

#include "head/core/nodes/node_views.h"

namespace troupe::head {
namespace {

constexpr std::size_t kNone = kChangedLists;

struct Kinds {
  static constexpr std::size_t Of(ChangedList list) { return static_cast<std::size_t>(list); }

  std::size_t operator()(const wire::NodeJoined&) { return Of(ChangedList::kNodes); }
  std::size_t operator()(const wire::NodeDied&) { return Of(ChangedList::kNodes); }
  std::size_t operator()(const wire::NodeDrained&) { return Of(ChangedList::kNodes); }
  std::size_t operator()(const wire::GroupSubmitted&) { return Of(ChangedList::kGroups); }
  std::size_t operator()(const wire::GroupUnplaced&) { return Of(ChangedList::kGroups); }
  std::size_t operator()(const wire::GroupPlaced&) { return Of(ChangedList::kGroups); }
  std::size_t operator()(const wire::GroupEnded&) { return Of(ChangedList::kGroups); }
  std::size_t operator()(const wire::LaunchSubmitted&) { return Of(ChangedList::kLaunches); }
  std::size_t operator()(const wire::EpochBegun&) { return Of(ChangedList::kLaunches); }
  std::size_t operator()(const wire::RosterPublished&) { return Of(ChangedList::kLaunches); }
  std::size_t operator()(const wire::RankFinished&) { return Of(ChangedList::kLaunches); }
  std::size_t operator()(const wire::EpochFailed&) { return Of(ChangedList::kLaunches); }
  std::size_t operator()(const wire::CancelRequested&) { return Of(ChangedList::kLaunches); }
  std::size_t operator()(const wire::MarkerWritten&) { return Of(ChangedList::kLaunches); }
  std::size_t operator()(const wire::LaunchRetired&) { return Of(ChangedList::kLaunches); }
  std::size_t operator()(const wire::GroupReformed&) { return Of(ChangedList::kLaunches); }
  std::size_t operator()(const wire::RankReplaced&) { return Of(ChangedList::kLaunches); }
  std::size_t operator()(const wire::ActorCreated&) { return Of(ChangedList::kActors); }
  std::size_t operator()(const wire::ActorPlaced&) { return Of(ChangedList::kActors); }
  std::size_t operator()(const wire::ActorLive&) { return Of(ChangedList::kActors); }
  std::size_t operator()(const wire::ActorDoomed&) { return Of(ChangedList::kActors); }
  std::size_t operator()(const wire::ActorDied&) { return Of(ChangedList::kActors); }
  std::size_t operator()(const wire::ActorForgotten&) { return Of(ChangedList::kActors); }
  std::size_t operator()(const wire::TokenWritten&) { return Of(ChangedList::kTokens); }
  template <class Other>
  std::size_t operator()(const Other&) {
    return kNone;
  }
};

std::uint64_t StatesOf(const State& state) {
  std::uint64_t all = 1469598103934665603ull;  // FNV-1a
  for (const auto& [id, node] : state.nodes) {
    all = (all ^ (static_cast<std::uint64_t>(StateOf(node)) + id.lo)) * 1099511628211ull;
  }
  return all;
}

}  // namespace

const char* NameOf(ChangedList list) {
  switch (list) {
    case ChangedList::kNodes:
      return "nodes";
    case ChangedList::kActors:
      return "actors";
    case ChangedList::kLaunches:
      return "launches";
    case ChangedList::kGroups:
      return "placement_groups";
    case ChangedList::kTokens:
      break;
  }
  return "tokens";
}

std::size_t ListOf(const wire::EventBody& event) { return wire::Visit(Kinds(), event); }

void ChangeFeed::OnStep(const std::vector<Row>& rows, bool may_change_nodes) {
  if (!watched_.load(std::memory_order_relaxed)) return;
  bool news = may_change_nodes;
  for (const Row& row : rows) {
    const std::size_t list = ListOf(row.event.body);
    if (list == kNone) continue;
    ++versions_[list];
    news = true;
  }
  if (news && !std::exchange(woken_, true)) wake_();
}

Changes ChangeFeed::Collect(std::uint64_t after) {
  woken_ = false;
  const std::uint64_t states = StatesOf(core_.state());
  if (std::exchange(states_, states) != states) ++versions_[0];
  Changes changes;
  changes.versions = versions_;
  changes.incarnation = core_.state().incarnation;
  const auto& notes = core_.state().history.notes();
  if (!notes.empty()) changes.first = notes.front().number;
  const auto begin = std::find_if(notes.begin(), notes.end(),
                                  [&](const auto& note) { return note.number > after; });
  changes.events.assign(begin, notes.end());
  return changes;
}

}  // namespace troupe::head
