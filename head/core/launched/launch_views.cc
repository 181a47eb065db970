#include "head/core/launched/launch_views.h"

#include <string>
#include <utility>

#include "head/core/machine/verdict.h"
#include "head/core/machine/wire_convert.h"
#include "head/core/nodes/node_views.h"
#include "head/core/placed/waiting.h"

namespace troupe::head {
namespace {

constexpr std::size_t kNodesNamed = 16;

// "2 of 4 nodes are there: a, b", of a run; empty once it runs.
std::string NodesAwaited(Turn& turn, const Launch& launch) {
  if (launch.phase != wire::LaunchState::kStarting || !launch.open()) return {};
  std::string names;
  std::size_t named = 0;
  for (const auto& [id, node] : turn.state.nodes) {
    if (!IsThere(node) || ++named > kNodesNamed) continue;
    names += (names.empty() ? ": " : ", ") + node.name;
  }
  if (named > kNodesNamed) names += " and " + std::to_string(named - kNodesNamed) + " more";
  return std::to_string(named) + " of " + std::to_string(launch.spec.ranks) + " nodes are there" +
         names;
}

// How the rank ended, as far as it has.
void NoteEnd(const Rank& rank, wire::RankInfo& item) {
  const bool ended = rank.done.outcome != wire::Outcome::kNone;
  item.outcome = ended ? rank.done.outcome : rank.late;
  item.exit_code = ended ? ExitCodeOf(rank.done.failure) : rank.late_exit_code;
  item.warning = rank.warning;
  if (rank.done.outcome != wire::Outcome::kFailed) return;
  item.cause = rank.done.failure.cause;
  item.kind = rank.done.failure.kind;
}

}  // namespace

void PushLaunch(Turn& turn, const Launch& launch) {
  if (launch.watchers.empty()) return;
  const wire::LaunchInfo info = InfoOf(turn, launch);
  for (const Route& route : launch.watchers) turn.SendTo(route, wire::LaunchUpdate{info});
}

wire::LaunchInfo InfoOf(Turn& turn, const Launch& launch) {
  wire::LaunchInfo info;
  info.launch = launch.id;
  info.name = launch.spec.name.empty() ? launch.spec.function_name : launch.spec.name;
  info.mode = launch.spec.mode;
  info.ranks = launch.spec.ranks;
  info.state = launch.phase;
  info.epoch = launch.epoch;
  info.attempts_max = launch.spec.attempts_max;
  info.priority = launch.spec.priority;
  info.user = launch.user;
  info.preemptions = launch.preemptions;
  info.submitted_us = launch.submitted_us;
  info.ready_ms = launch.roster.ready_ms;
  info.started_from = launch.roster.started_from;
  info.nodes = launch.nodes;
  info.travelled = launch.spec.environment.travelled;
  info.not_taken = launch.spec.environment.not_taken;
  info.per_rank = launch.spec.per_rank;
  info.head_incarnation = turn.state.incarnation;
  info.failure = launch.last_failure;
  if (launch.marker) {
    info.outcome = launch.marker->outcome;
    info.exit_code = launch.marker->exit_code;
    info.cause = launch.marker->cause;
    info.failure = launch.marker->failure;
    info.duration_ms = launch.marker->duration_ms;
  } else {
    if (launch.cancel_requested) info.cause = "cancel requested: " + launch.cancel_reason;
    if (launch.ending.step == Ending::Step::kStopping) {
      info.state = wire::LaunchState::kStopping;
      info.cause = launch.ending.order.reason;
      info.failure = launch.ending.verdict;
    }
    info.duration_ms =
        turn.wall_us > launch.submitted_us ? (turn.wall_us - launch.submitted_us) / 1000 : 0;
  }
  info.group_epoch = GroupEpochOf(launch);
  info.on_rank_death = launch.spec.on_rank_death;
  info.watchers = static_cast<std::uint32_t>(launch.watchers.size());
  if (launch.spec.mode == wire::LaunchMode::kCommand) info.waiting_for = NodesAwaited(turn, launch);
  const Group* gang = turn.FindGroup(launch.group);
  if (launch.phase == wire::LaunchState::kQueued && gang != nullptr) {
    if (gang->attempting) info.state = wire::LaunchState::kReserving;
    if (gang->waiting()) {
      info.waiting_for = WaitingFor(turn, *gang);
      info.queue_place = QueuePlace(turn, *gang) + 1;
    }
  }
  for (std::uint32_t r = 0; r < launch.ranks.size(); ++r) {
    const Rank& rank = launch.ranks[r];
    wire::RankInfo item;
    item.rank = r;
    item.node = rank.node;
    item.node_name = turn.NodeName(rank.node);
    if (const Node* node = turn.SeeNode(rank.node)) item.host = node->info.host;
    item.local_rank = rank.local_rank;
    if (!launch.ready.empty() && launch.ready.count(rank.node) > 0) ++info.ready_ranks;
    NoteEnd(rank, item);
    info.rank_infos.push_back(std::move(item));
    info.result_bytes.push_back(rank.value.empty() ? rank.done.size_bytes : rank.value.size());
  }
  return info;
}

}  // namespace troupe::head
