#include "head/core/launched/epoch_ends.h"

#include <utility>
#include <vector>

#include "head/core/launched/launch_views.h"
#include "head/core/launched/rank_ends.h"
#include "head/core/placed/actor_losses.h"
#include "head/core/placed/groups.h"

namespace troupe::head {
namespace {

wire::EndEpoch EndOf(const Launch& launch, wire::Outcome outcome, std::int32_t exit_code,
                     const std::string& reason) {
  wire::EndEpoch end;
  end.launch = launch.id;
  end.epoch = launch.epoch;
  end.outcome = outcome;
  end.exit_code = exit_code;
  end.reason = reason;
  return end;
}

// To every node of the current epoch; what its driver made ends too.
void EndOnNodes(Turn& turn, Launch& launch, const wire::EndEpoch& end) {
  for (const NodeId& node : launch.nodes) turn.ToNode(node, end);
  EndActorsOf(turn, launch.id, end.terminal ? "its launch ended" : "its launch's attempt ended");
  std::vector<GroupId> inner;
  for (const auto& [id, group] : turn.state.groups) {
    if (group.spec.launch == launch.id && !group.spec.gang && group.live()) inner.push_back(id);
  }
  for (const GroupId& id : inner) EndGroup(turn, id, "its launch ended");
}

// The epoch is over, the launch waits for another one.
void QueueAgain(Turn& turn, Launch& launch, const wire::EndEpoch& end, wire::Failure failure,
                bool preempted) {
  EndOnNodes(turn, launch, end);
  wire::EpochFailed failed;
  failed.launch = launch.id;
  failed.epoch = launch.epoch;
  failed.failure = std::move(failure);
  failed.preempted = preempted;
  turn.Append(std::move(failed));
  launch.ending = Ending();
  if (Group* gang = turn.FindGroup(launch.group)) {
    Unplace(turn, *gang, launch.last_failure.cause);
    gang->refusals = 0;
    gang->retry_at = turn.now;
  }
  PushLaunch(turn, launch);
}

}  // namespace

void EndEpoch(Turn& turn, Launch& launch, wire::Failure failure) {
  const wire::EndEpoch end = EndOf(launch, wire::Outcome::kFailed, 1, failure.cause);
  QueueAgain(turn, launch, end, std::move(failure), false);
}

void PreemptEpoch(Turn& turn, Launch& launch, const std::string& why) {
  wire::EndEpoch end = EndOf(launch, wire::Outcome::kFailed, 1, why);
  end.grace_ms = launch.spec.stop_grace_ms;
  QueueAgain(turn, launch, end, FailureOn(turn, launch, -1, wire::FailureKind::kPreempted, why),
             true);
}

void EndForMarker(Turn& turn, Launch& launch) {
  wire::EndEpoch end =
      EndOf(launch, launch.marker->outcome, launch.marker->exit_code, launch.marker->cause);
  end.terminal = true;
  EndOnNodes(turn, launch, end);
}

void TellEpochEnded(Turn& turn, const NodeId& node, const LaunchId& id, std::uint64_t epoch) {
  wire::EndEpoch end;
  end.launch = id;
  end.epoch = epoch;
  end.outcome = wire::Outcome::kFailed;
  end.exit_code = 76;  // fenced
  end.reason = "this epoch is over";
  const Launch* launch = turn.FindLaunch(id);
  if (launch != nullptr && launch->marker) {
    end.outcome = launch->marker->outcome;
    end.exit_code = launch->marker->exit_code;
    end.terminal = true;
  }
  turn.ToNode(node, std::move(end));
}

}  // namespace troupe::head
