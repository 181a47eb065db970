#include "head/core/placed/predecessors.h"

#include <algorithm>

namespace troupe::head {

const Launch* SeeLaunch(const Turn& turn, const LaunchId& id) {
  const auto found = turn.state.launches.find(id);
  return found == turn.state.launches.end() ? nullptr : &found->second;
}

std::optional<wire::Outcome> OutcomeOf(const Turn& turn, const LaunchId& id) {
  const Launch* launch = SeeLaunch(turn, id);
  if (launch != nullptr) {
    if (launch->open()) return std::nullopt;
    return launch->marker->outcome;
  }
  const auto stone = turn.state.tombstones.find(id);
  return stone == turn.state.tombstones.end() ? wire::Outcome::kSucceeded : stone->second.outcome;
}

std::string NameOfLaunch(const Turn& turn, const LaunchId& id) {
  const Launch* launch = SeeLaunch(turn, id);
  return "launch " + id.Short() + (launch == nullptr ? "" : " (" + launch->spec.name + ")");
}

bool WaitsForLaunches(const Turn& turn, const Group& group) {
  const Launch* launch = group.spec.gang ? SeeLaunch(turn, group.spec.launch) : nullptr;
  if (launch == nullptr) return false;
  return std::any_of(launch->job.after.begin(), launch->job.after.end(),
                     [&](const LaunchId& id) { return !OutcomeOf(turn, id).has_value(); });
}

std::string LaunchesWaitedFor(const Turn& turn, const Group& group) {
  std::string text;
  for (const LaunchId& id : SeeLaunch(turn, group.spec.launch)->job.after) {
    if (OutcomeOf(turn, id)) continue;
    text += (text.empty() ? "the end of " : ", ") + NameOfLaunch(turn, id) + ", which is " +
            NameOf(SeeLaunch(turn, id)->phase);
  }
  return text;
}

}  // namespace troupe::head
