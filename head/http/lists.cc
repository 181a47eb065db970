#include "head/http/lists.h"

#include <string_view>

#include "head/core/launched/launch_views.h"
#include "head/core/machine/job_terms.h"
#include "head/core/nodes/node_views.h"
#include "head/core/placed/actor_views.h"
#include "head/core/placed/group_views.h"

namespace troupe::head {
namespace {

// Key of the user in a job's own terms (troupe/_code/travelled.py).
constexpr std::string_view kJobUser = "about.user=";

bool IsDeleted(const State& state, const Launch& launch) {
  return state.values.count({kDeletedJobs, launch.id.Hex()}) > 0;
}

}  // namespace

NodeRow RowOf(Turn& turn, const Node& node) {
  NodeRow row{InfoOf(turn, node)};
  if (node.measures) row.info.measures = node.measures->measures;
  return row;
}
ActorRow RowOf(Turn& turn, const Actor& actor) { return {InfoOf(turn, actor)}; }
GroupRow RowOf(Turn& turn, const Group& group) { return {InfoOf(turn, group)}; }

LaunchRow RowOf(Turn& turn, const Launch& launch) {
  LaunchRow row{InfoOf(turn, launch), "", ""};
  if (!IsDeleted(turn.state, launch)) row.job = JobIdOf(launch.spec);
  row.user = UserOf(launch);
  return row;
}

std::string UserOf(const Launch& launch) {
  if (!launch.user.empty()) return launch.user;
  for (const std::string_view text : launch.spec.environment.travelled) {
    if (text.starts_with(kJobUser)) return std::string(text.substr(kJobUser.size()));
  }
  return "";
}

bool IsJob(const State& state, const Launch& launch) {
  return !JobIdOf(launch.spec).empty() && !IsDeleted(state, launch);
}

const char* JobStateOf(wire::LaunchState state, wire::Outcome outcome,
                       const wire::Failure& failure) {
  switch (state) {
    case wire::LaunchState::kQueued:
    case wire::LaunchState::kReserving:
      return "QUEUED";
    case wire::LaunchState::kStarting:
      return "STARTING";
    case wire::LaunchState::kRunning:
    case wire::LaunchState::kStopping:
      return "RUNNING";
    case wire::LaunchState::kTerminal:
      break;
  }
  if (outcome == wire::Outcome::kSucceeded) return "SUCCEEDED";
  // A job whose time was over has failed.
  const bool late = failure.exception_type == "builtins.TimeoutError";
  return outcome == wire::Outcome::kCancelled && !late ? "STOPPED" : "FAILED";
}

}  // namespace troupe::head
