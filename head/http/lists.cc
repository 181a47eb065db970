#include "head/http/lists.h"

#include <algorithm>
#include <string_view>

#include "head/core/actor_views.h"
#include "head/core/groups.h"
#include "head/core/launches.h"
#include "head/core/status.h"

namespace troupe::head {
namespace {

// What a launch that is a job says of itself (troupe/_code/travelled.py), and the scope of the
// values that name deleted ones (troupe/job_submission).
constexpr std::string_view kJobDoor = "door=job", kJobId = "about.id=", kJobUser = "about.user=";
constexpr char kDeletedJobs[] = "jobs";

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
  for (const std::string_view text : row.info.travelled) {
    if (text.starts_with(kJobId)) row.job = text.substr(kJobId.size());
  }
  row.user = UserOf(launch);
  if (!IsJob(turn.state, launch)) row.job.clear();
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
  const auto& travelled = launch.spec.environment.travelled;
  return std::find(travelled.begin(), travelled.end(), kJobDoor) != travelled.end() &&
         !IsDeleted(state, launch);
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
