#include "head/core/launched/jobs/jobs.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "head/core/launched/markers.h"
#include "head/core/launched/revocation.h"
#include "head/core/placed/predecessors.h"

namespace troupe::head {
namespace {

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
    for (const LaunchId& before : SeeLaunch(turn, id)->job.after) followers.emplace(before, id);
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
    if (SeeLaunch(turn, id) == nullptr && turn.state.tombstones.count(id) == 0)
      return "it is to start after launch " + id.Short() + ", which this cluster does not know";
    const auto outcome = OutcomeOf(turn, id);
    if (outcome && *outcome != wire::Outcome::kSucceeded) {
      return "it is to start after " + NameOfLaunch(turn, id) + ", which " + HowItEnded(*outcome) +
             ": it would never start";
    }
  }
  return {};
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
