#include "head/core/launched/epochs.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "head/core/launched/ending.h"
#include "head/core/launched/epoch_ends.h"
#include "head/core/launched/gang/regroup.h"
#include "head/core/launched/gang/returned.h"
#include "head/core/launched/launch_views.h"
#include "head/core/launched/markers.h"
#include "head/core/launched/rank_ends.h"
#include "head/core/launched/start_orders.h"
#include "head/core/machine/wire_convert.h"

namespace troupe::head {
namespace {

constexpr std::size_t kStartedFromMax = 4;

void SendRoster(Turn& turn, const Launch& launch, const NodeId& node) {
  wire::PublishRoster roster;
  roster.launch = launch.id;
  roster.epoch = launch.epoch;
  roster.generation = kGeneration;
  roster.store_host = launch.roster.store_host;
  roster.store_port = launch.roster.store_port;
  roster.group_secret = launch.roster.group_secret;
  if (launch.ranks[0].node == node) roster.rank_actors = launch.roster.rank_actors;
  roster.nodes = launch.nodes;
  turn.ToNode(node, std::move(roster));
}

// Joins the nodes' texts, each once, and no more of them than a person reads.
std::string StartedFrom(const Launch& launch) {
  std::set<std::string> all;
  for (const auto& [node, ready] : launch.ready) {
    if (!ready.started_from.empty()) all.insert(ready.started_from);
  }
  std::string text;
  std::size_t named = 0;
  for (const std::string& each : all) {
    if (++named > kStartedFromMax) break;
    text += (text.empty() ? "" : "; ") + each;
  }
  return all.size() > kStartedFromMax ? text + "; ..." : text;
}

void PublishRoster(Turn& turn, Launch& launch) {
  wire::RosterPublished event;
  event.launch = launch.id;
  event.epoch = launch.epoch;
  event.ready_ms = static_cast<std::uint64_t>(Millis(turn.now - launch.started));
  const wire::RanksReady& first = launch.ready[launch.nodes[0]];
  event.store_host = first.store_host;
  event.store_port = first.store_port;
  event.started_from = StartedFrom(launch);
  event.group_secret = first.group_secret;
  for (const Rank& rank : launch.ranks) {
    const auto& addresses = launch.ready[rank.node].rank_actors;
    if (rank.local_rank < addresses.size()) event.rank_actors.push_back(addresses[rank.local_rank]);
  }
  turn.Append(std::move(event));
  launch.ready.clear();
  for (const NodeId& node : launch.nodes) SendRoster(turn, launch, node);
  PushLaunch(turn, launch);
}

void Acknowledge(Turn& turn, const Node& node, const wire::RankDone& message) {
  wire::RankDoneAck ack;
  ack.launch = message.launch;
  ack.epoch = message.epoch;
  ack.rank = message.rank;
  turn.ToNode(node.id, ack);
}

// The marker stands; how the other ranks ended is told all the same, as long as this head lives.
void NoteLateEnd(Launch* launch, const Node& node, const wire::RankDone& message) {
  if (launch == nullptr || launch->open() || launch->epoch != message.epoch) return;
  if (message.rank >= launch->ranks.size() || launch->ranks[message.rank].node != node.id) return;
  Rank& rank = launch->ranks[message.rank];
  rank.late = message.outcome;
  rank.late_exit_code = ExitCodeOf(message.failure);
}

// Fills in rank, node and cause of a failed rank, as far as its worker left them out.
void FillIn(const Node& node, wire::Outcome outcome, std::uint32_t rank, wire::Failure* failure) {
  failure->rank = static_cast<std::int32_t>(rank);
  failure->node = node.id;
  if (failure->node_name.empty()) failure->node_name = node.name;
  if (failure->host.empty()) failure->host = node.info.host;
  if (!failure->cause.empty()) return;
  failure->cause = outcome == wire::Outcome::kSucceeded
                       ? "it left before the driver's completion marker"
                       : "it ended without a value";
}

bool AllSucceeded(const Launch& launch) {
  for (const Rank& rank : launch.ranks) {
    if (rank.done.outcome != wire::Outcome::kSucceeded) return false;
  }
  return true;
}

}  // namespace

void BeginEpoch(Turn& turn, const Group& gang) {
  Launch* launch = turn.FindLaunch(gang.spec.launch);
  if (launch == nullptr || !launch->open()) return;
  wire::EpochBegun begun;
  begun.launch = launch->id;
  begun.epoch = launch->epoch + 1;
  begun.attempt = gang.attempt;
  for (const wire::BundlePlace& place : gang.places) {
    begun.nodes.push_back(place.node);
    for (std::uint32_t local = 0; local < place.ranks; ++local) {
      wire::RankPlacement rank;
      rank.rank = static_cast<std::uint32_t>(begun.ranks.size());
      rank.node = place.node;
      rank.local_rank = local;
      begun.ranks.push_back(rank);
    }
  }
  turn.Append(std::move(begun));
  launch->ready.clear();
  launch->ending = Ending();
  launch->hang = HangInquiry();
  launch->returned = ReturnedInquiry();
  launch->started = turn.now;
  launch->driver_route = Route();
  launch->driver_renews = false;
  const LaunchNetworks networks = NetworksOf(turn, *launch);
  for (std::size_t i = 0; i < launch->nodes.size(); ++i)
    SendStartRanks(turn, *launch, i, networks);
}

void OnRanksReady(Turn& turn, Node& node, const wire::RanksReady& message) {
  Launch* launch = turn.FindLaunch(message.launch);
  if (launch == nullptr || !launch->on_nodes() || launch->epoch != message.epoch) {
    TellEpochEnded(turn, node.id, message.launch, message.epoch);
    return;
  }
  const bool ours = std::count(launch->nodes.begin(), launch->nodes.end(), node.id) > 0;
  if (launch->ending.step == Ending::Step::kStopping) return;
  // a run has no ranks, so no nodes that start any
  if (message.generation != kGeneration || !ours) return;
  if (launch->phase == wire::LaunchState::kRunning) {
    SendRoster(turn, *launch, node.id);
    ResumeRegroupOn(turn, *launch, node.id);
    return;
  }
  launch->ready[node.id] = message;
  for (const NodeId& wanted : launch->nodes) {
    if (launch->ready.count(wanted) == 0) return;
  }
  PublishRoster(turn, *launch);
}

void OnRankDone(Turn& turn, Node& node, const wire::RankDone& message, const std::string& value) {
  Launch* launch = turn.FindLaunch(message.launch);
  const bool current = launch != nullptr && launch->on_nodes() && launch->epoch == message.epoch &&
                       message.generation == kGeneration && message.rank < launch->ranks.size() &&
                       launch->ranks[message.rank].node == node.id &&
                       launch->ranks[message.rank].life == message.life;
  // A repeat, a fenced epoch, a launch with its marker: nothing changes, and the worker may forget
  // it.
  if (!current || launch->ranks[message.rank].done.outcome != wire::Outcome::kNone) {
    NoteLateEnd(launch, node, message);
    Acknowledge(turn, node, message);
    return;
  }
  wire::RankDone done = message;
  done.order = NextInLog(*launch);
  const bool driver_mode = launch->spec.mode == wire::LaunchMode::kDriver;
  const bool failed =
      message.outcome != wire::Outcome::kSucceeded || (driver_mode && message.rank != 0);
  if (failed) FillIn(node, message.outcome, message.rank, &done.failure);
  turn.Append(wire::RankFinished{std::move(done)}, value);
  Acknowledge(turn, node, message);
  OnRankEnded(turn, *launch);
  if (!launch->on_nodes() || launch->ending.step != Ending::Step::kNo || failed) return;
  if (driver_mode || AllSucceeded(*launch)) {
    Verdict verdict;
    verdict.outcome = wire::Outcome::kSucceeded;
    WriteMarker(turn, *launch, std::move(verdict));
  } else {
    NoteReturned(turn, *launch, message.rank);
  }
}

void OnRankLeft(Turn& turn, Node& node, const wire::RankLeft& message) {
  Launch* launch = turn.FindLaunch(message.launch);
  if (launch == nullptr || launch->epoch != message.epoch || message.rank >= launch->ranks.size())
    return;
  if (launch->ranks[message.rank].node != node.id) return;
  launch->ranks[message.rank].warning = message.warning;
  PushLaunch(turn, *launch);
}

void FailLaunchesOn(Turn& turn, const NodeId& node, const std::string& why, bool verdict) {
  const auto kind = verdict ? wire::FailureKind::kNodeLost : wire::FailureKind::kNodeUnreachable;
  std::vector<LaunchId> hit;
  for (auto& [id, launch] : turn.state.launches) {
    if (!launch.on_nodes()) continue;
    bool any = false;
    for (std::size_t r = 0; r < launch.ranks.size(); ++r) {
      // Under a driver every rank must live to the marker; otherwise a finished one is done.
      if (launch.ranks[r].node != node || launch.ranks[r].done.outcome != wire::Outcome::kNone)
        continue;
      FailRank(turn, launch, FailureOn(turn, launch, static_cast<std::int32_t>(r), kind, why));
      any = true;
    }
    if (any) hit.push_back(id);
  }
  for (const LaunchId& id : hit) {
    if (Launch* launch = turn.FindLaunch(id); launch->on_nodes()) OnRankEnded(turn, *launch);
  }
  ForgetNodeInEndings(turn, node);
}

void FailMissingRanks(Turn& turn, const NodeId& node) {
  std::vector<LaunchId> hit;
  for (auto& [id, launch] : turn.state.launches) {
    if (!launch.on_nodes()) continue;
    bool any = false;
    for (std::size_t r = 0; r < launch.ranks.size(); ++r) {
      const Rank& rank = launch.ranks[r];
      if (rank.node != node || !rank.missing || rank.done.outcome != wire::Outcome::kNone) continue;
      FailRank(turn, launch,
               FailureOn(turn, launch, static_cast<std::int32_t>(r), wire::FailureKind::kMissing,
                         "its node came back and no longer runs it"));
      any = true;
    }
    if (any) hit.push_back(id);
  }
  for (const LaunchId& id : hit) {
    if (Launch* launch = turn.FindLaunch(id); launch->on_nodes()) OnRankEnded(turn, *launch);
  }
}

void ResumeLaunchesOn(Turn& turn, const NodeId& node) {
  for (auto& [id, launch] : turn.state.launches) {
    if (!launch.on_nodes()) continue;
    for (std::size_t i = 0; i < launch.nodes.size(); ++i) {
      if (launch.nodes[i] != node) continue;
      if (launch.phase == wire::LaunchState::kStarting)
        SendStartRanks(turn, launch, i, NetworksOf(turn, launch));
      if (launch.phase == wire::LaunchState::kRunning) {
        SendRoster(turn, launch, node);
        ResumeRegroupOn(turn, launch, node);
        ResumeReturnedOn(turn, launch, node);
      }
      ResumeEndingOn(turn, launch, node);
    }
  }
}

}  // namespace troupe::head
