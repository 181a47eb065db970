#include "head/core/launched/markers.h"

#include <utility>

#include "head/core/launched/epoch_ends.h"
#include "head/core/launched/launch_views.h"
#include "head/core/machine/lived_time.h"
#include "head/core/placed/groups.h"
#include "runtime/base/check.h"

namespace troupe::head {
namespace {

void Announce(Turn& turn, Launch& launch) {
  const wire::MarkerReply reply{*launch.marker};
  for (const Waiter& waiter : turn.state.waits.TakeOf(launch.id))
    turn.SendTo(waiter.route, reply, {}, waiter.request);
  PushLaunch(turn, launch);
}

// Deadlines of a launch that is over: they may lie far ahead.
void DisarmAll(Turn& turn, const Launch& launch) {
  turn.state.timers.Disarm(launch.timeout_due, TimerKind::kLaunch, launch.id);
  turn.state.timers.Disarm(launch.ending.due, TimerKind::kEnding, launch.id);
  turn.state.timers.Disarm(launch.ending.silent_until, TimerKind::kEnding, launch.id);
  turn.state.timers.Disarm(launch.regroup.due, TimerKind::kReform, launch.id);
}

}  // namespace

void WriteMarker(Turn& turn, Launch& launch, Verdict verdict) {
  TROUPE_CHECK(launch.open(), launch.id.Hex());
  const bool on_nodes = launch.on_nodes();
  wire::MarkerWritten written;
  wire::Marker& marker = written.marker;
  marker.launch = launch.id;
  marker.epoch = launch.epoch;
  marker.outcome = verdict.outcome;
  marker.exit_code = verdict.exit_code;
  marker.cause = verdict.cause.empty() ? verdict.failure.cause : std::move(verdict.cause);
  marker.request = verdict.request;
  marker.wall_time_us = turn.wall_us;
  marker.head_incarnation = turn.state.incarnation;
  if (turn.wall_us > launch.submitted_us) {
    marker.duration_ms = (turn.wall_us - launch.submitted_us) / 1000;
  }
  marker.failure = std::move(verdict.failure);
  written.lived_us = LivedUs(turn.state, turn.now);
  written.manifest_sha256 = std::move(verdict.manifest);
  turn.Append(std::move(written), std::move(verdict.value));
  Announce(turn, launch);
  DisarmAll(turn, launch);
  launch.ending = Ending();
  if (on_nodes) EndForMarker(turn, launch);
  EndGroup(turn, launch.group, "its launch ended");
  turn.Happened(fact::LaunchEnded{launch});
}

}  // namespace troupe::head
