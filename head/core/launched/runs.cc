#include "head/core/launched/runs.h"

#include <utility>
#include <vector>

#include "head/core/launched/launch_views.h"
#include "head/core/nodes/node_views.h"

namespace troupe::head {
namespace {

std::uint32_t CountNodes(const State& state) {
  std::uint32_t count = 0;
  for (const auto& [id, node] : state.nodes) count += IsThere(node) ? 1 : 0;
  return count;
}

}  // namespace

Launch& BeginRun(Turn& turn, const Request& request, const wire::SubmitLaunch& message) {
  wire::LaunchSubmitted submitted;
  submitted.launch = LaunchId::Random(turn.random);
  submitted.spec = message.spec;
  submitted.request = message.request;
  submitted.owner = message.spec.detached ? OwnerId() : request.owner;
  submitted.line = request.line;
  submitted.token = request.token;
  submitted.user = request.user;
  submitted.submitted_us = turn.wall_us;
  wire::EpochBegun begun;
  begun.launch = submitted.launch;
  begun.epoch = 1;
  turn.Append(std::move(submitted));
  turn.Append(begun);
  Launch& launch = *turn.FindLaunch(begun.launch);
  launch.watchers.insert(request.route);
  launch.started = turn.now;
  turn.state.dirty = true;
  return launch;
}

void CountNodesOfRuns(Turn& turn) {
  if (turn.state.waiting_runs.empty()) return;
  const std::uint32_t count = CountNodes(turn.state);
  const std::set<LaunchId> waiting = turn.state.waiting_runs;
  for (const LaunchId& id : waiting) {
    Launch& launch = *turn.FindLaunch(id);
    if (count >= launch.spec.ranks) {
      wire::RosterPublished published;
      published.launch = id;
      published.epoch = launch.epoch;
      published.ready_ms = static_cast<std::uint64_t>(Millis(turn.now - launch.started));
      turn.Append(std::move(published));
    } else if (count == launch.nodes_there) {
      continue;
    }
    launch.nodes_there = count;
    PushLaunch(turn, launch);
  }
}

void TellWatchersLeft(Turn& turn) {
  for (const auto& [id, launch] : turn.state.launches) {
    const bool over = launch.spec.mode == wire::LaunchMode::kCommand && !launch.open();
    if (over) PushLaunch(turn, launch);
  }
}

}  // namespace troupe::head
