#include "head/core/jobs/jobs.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "head/core/markers.h"
#include "head/core/revocation.h"
#include "head/core/verdict.h"

namespace troupe::head {
namespace {

const Launch* Find(const Turn& turn, const LaunchId& id) {
  const auto found = turn.state.launches.find(id);
  return found == turn.state.launches.end() ? nullptr : &found->second;
}

// How a launch ended; nullopt: it is open. One that was forgotten has succeeded, for all that a
// launch in the queue can know: its failure would have been followed up at once.
std::optional<wire::Outcome> OutcomeOf(const Turn& turn, const LaunchId& id) {
  const Launch* launch = Find(turn, id);
  if (launch != nullptr) {
    if (launch->open()) return std::nullopt;
    return launch->marker->outcome;
  }
  const auto stone = turn.state.tombstones.find(id);
  return stone == turn.state.tombstones.end() ? wire::Outcome::kSucceeded : stone->second.outcome;
}

std::string NameOfLaunch(const Turn& turn, const LaunchId& id) {
  const Launch* launch = Find(turn, id);
  return "launch " + id.Short() + (launch == nullptr ? "" : " (" + launch->spec.name + ")");
}

std::string HowItEnded(wire::Outcome outcome) {
  return outcome == wire::Outcome::kCancelled ? "was cancelled" : NameOf(outcome);
}

void Fail(Turn& turn, Launch& launch, const LaunchId& before) {
  Verdict verdict;
  verdict.outcome = wire::Outcome::kFailed;
  verdict.exit_code = 1;
  verdict.failure.kind = wire::FailureKind::kPredecessorFailed;
  verdict.failure.cause = "it was to start after " + NameOfLaunch(turn, before) + ", which " +
                          HowItEnded(*OutcomeOf(turn, before));
  WriteMarker(turn, launch, std::move(verdict));
}

// Launches that start after another one, by that one.
std::multimap<LaunchId, LaunchId> Followers(const Turn& turn) {
  std::multimap<LaunchId, LaunchId> followers;
  for (const LaunchId& id : turn.state.waiting_after) {
    for (const LaunchId& before : Find(turn, id)->job.after) followers.emplace(before, id);
  }
  return followers;
}

// Fails also those after launches that end here, in one loop, so that a chain of launches takes no
// stack.
void FailThoseAfter(Turn& turn) {
  if (std::exchange(turn.state.failing_jobs, true)) return;
  const std::multimap<LaunchId, LaunchId> followers = Followers(turn);
  std::deque<LaunchId> failed;
  for (const auto& [before, id] : followers) {
    const auto outcome = OutcomeOf(turn, before);
    if (outcome && *outcome != wire::Outcome::kSucceeded) failed.push_back(before);
  }
  for (; !failed.empty(); failed.pop_front()) {
    const auto [first, last] = followers.equal_range(failed.front());
    for (auto each = first; each != last; ++each) {
      Launch* launch = turn.FindLaunch(each->second);
      if (!launch->open()) continue;
      Fail(turn, *launch, failed.front());
      failed.push_back(launch->id);
    }
  }
  turn.state.failing_jobs = false;
}

}  // namespace

std::string ObjectionToJob(const Turn& turn, const Request& request, const wire::LaunchSpec& spec) {
  const StatusOr<JobTerms> terms = ParseJobTerms(spec);
  if (!terms.ok()) return MessageOf(terms.status());
  if (!terms->token.IsNil() && request.role != wire::Role::kClient)
    return "only a client submits a launch with a token of its own";
  for (const LaunchId& id : terms->after) {
    if (Find(turn, id) == nullptr && turn.state.tombstones.count(id) == 0)
      return "it is to start after launch " + id.Short() + ", which this cluster does not know";
    const auto outcome = OutcomeOf(turn, id);
    if (outcome && *outcome != wire::Outcome::kSucceeded) {
      return "it is to start after " + NameOfLaunch(turn, id) + ", which " + HowItEnded(*outcome) +
             ": it would never start";
    }
  }
  return {};
}

bool WaitsForLaunches(const Turn& turn, const Group& group) {
  const Launch* launch = group.spec.gang ? Find(turn, group.spec.launch) : nullptr;
  if (launch == nullptr) return false;
  return std::any_of(launch->job.after.begin(), launch->job.after.end(),
                     [&](const LaunchId& id) { return !OutcomeOf(turn, id).has_value(); });
}

std::string LaunchesWaitedFor(const Turn& turn, const Group& group) {
  std::string text;
  for (const LaunchId& id : Find(turn, group.spec.launch)->job.after) {
    if (OutcomeOf(turn, id)) continue;
    text += (text.empty() ? "the end of " : ", ") + NameOfLaunch(turn, id) + ", which is " +
            NameOf(Find(turn, id)->phase);
  }
  return text;
}

void OnJobMarker(Turn& turn, const Launch& ended) {
  if (!ended.job.token.IsNil())
    EndToken(turn, ended.job.token, "the job that it was made for ended");
  if (turn.state.waiting_after.empty()) return;
  turn.state.dirty = true;
  if (ended.marker->outcome != wire::Outcome::kSucceeded) FailThoseAfter(turn);
}

void ResumeJobs(Turn& turn) { FailThoseAfter(turn); }

}  // namespace troupe::head
