#include "head/http/lists.h"

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

}  // namespace

NodeRow RowOf(Turn& turn, const Node& node) { return {InfoOf(turn, node)}; }
ActorRow RowOf(Turn& turn, const Actor& actor) { return {InfoOf(turn, actor)}; }
GroupRow RowOf(Turn& turn, const Group& group) { return {InfoOf(turn, group)}; }

LaunchRow RowOf(Turn& turn, const Launch& launch) {
  LaunchRow row{InfoOf(turn, launch), "", ""};
  bool is_job = false;
  for (const std::string_view text : row.info.travelled) {
    if (text == kJobDoor) is_job = true;
    if (text.starts_with(kJobId)) row.job = text.substr(kJobId.size());
    if (text.starts_with(kJobUser)) row.user = text.substr(kJobUser.size());
  }
  const bool deleted = turn.state.values.count({kDeletedJobs, launch.id.Hex()}) > 0;
  if (!is_job || deleted) row.job.clear();
  return row;
}

}  // namespace troupe::head
