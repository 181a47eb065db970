#include "head/core/launched/reconcile.h"

#include <set>
#include <tuple>
#include <utility>

#include "head/core/launched/ending.h"
#include "head/core/launched/epoch_ends.h"
#include "head/core/launched/epochs.h"
#include "head/core/machine/verdict.h"
#include "head/core/machine/wire_convert.h"
#include "head/core/placed/actor_lives.h"
#include "head/core/placed/actor_losses.h"
#include "head/core/placed/actors.h"
#include "head/core/placed/former_lives.h"
#include "head/core/placed/groups.h"

namespace troupe::head {
namespace {

// Returns true if all of the launch's ranks that were on this node have died, and the launch goes
// on without them.
bool AllDiedOn(const Launch& launch, const NodeId& node) {
  for (std::size_t r = 0; r < launch.ranks.size(); ++r) {
    if (launch.ranks[r].node == node && !Died(launch, r)) return false;
  }
  return true;
}

// Ranks the node reports and nobody wants end; ranks it should have and does not report are
// missing.
void ReconcileRanks(Turn& turn, Node& node, const wire::RegisterNode& report) {
  std::set<std::tuple<LaunchId, std::uint64_t, std::uint32_t>> reported;
  std::set<std::pair<LaunchId, std::uint64_t>> stale;
  for (const wire::HeldRank& held : report.ranks) {
    reported.emplace(held.launch, held.epoch, held.rank);
    const Launch* launch = turn.FindLaunch(held.launch);
    const bool current = launch != nullptr && launch->on_nodes() && launch->epoch == held.epoch &&
                         held.rank < launch->ranks.size() &&
                         launch->ranks[held.rank].node == node.id && !AllDiedOn(*launch, node.id);
    if (!current) stale.emplace(held.launch, held.epoch);
  }
  for (const auto& [launch, epoch] : stale) TellEpochEnded(turn, node.id, launch, epoch);
  for (auto& [id, launch] : turn.state.launches) {
    if (!launch.open() || launch.phase != wire::LaunchState::kRunning) continue;
    for (std::uint32_t r = 0; r < launch.ranks.size(); ++r) {
      Rank& rank = launch.ranks[r];
      // A rank that is to be started is ordered again.
      const bool awaited = rank.life > launch.regroup.formed.group_epoch;
      if (rank.node == node.id)
        rank.missing = !awaited && reported.count({id, launch.epoch, r}) == 0;
    }
  }
  ResumeLaunchesOn(turn, node.id);
}

void ReconcileActors(Turn& turn, Node& node, const wire::RegisterNode& report) {
  std::set<std::pair<ActorId, std::uint64_t>> reported;
  for (const wire::HeldActor& held : report.actors) {
    reported.emplace(held.actor, held.incarnation);
    const Actor* actor = turn.FindActor(held.actor);
    const bool ours = actor != nullptr && actor->live() && actor->incarnation == held.incarnation &&
                      actor->place.node == node.id;
    if (!ours) TellActorEnded(turn, node.id, held.actor, held.incarnation);
  }
  for (auto& [id, actor] : turn.state.actors) {
    // A starting actor is ordered again, unless it is to end.
    const bool expected = actor.state == wire::ActorState::kAlive || actor.doomed;
    if (!expected || actor.place.node != node.id) continue;
    actor.missing = reported.count({id, actor.incarnation}) == 0;
  }
  ResumeActorsOn(turn, node.id);
  SettleFormerLives(turn, node, report);
}

void ReconcileHoldings(Turn& turn, Node& node, const wire::RegisterNode& report) {
  std::set<Lease> reported;
  for (const wire::Holding& held : report.holdings) {
    const Lease lease{held.group, held.attempt};
    reported.insert(lease);
    const Group* group = turn.FindGroup(held.group);
    const auto known = node.holdings.find(lease);
    const bool live = group != nullptr && group->live() && group->attempt == held.attempt &&
                      known != node.holdings.end() &&
                      known->second.state != HoldingState::kReleasing;
    if (live || held.draining) continue;
    wire::Release release;
    release.group = held.group;
    release.attempt = held.attempt;
    turn.ToNode(node.id, std::move(release));
  }
  std::vector<GroupId> asked;
  std::vector<GroupId> lost;
  for (auto it = node.holdings.begin(); it != node.holdings.end();) {
    const auto& [lease, holding] = *it;
    if (holding.state == HoldingState::kAsked) asked.push_back(lease.first);
    if (holding.state == HoldingState::kHeld && reported.count(lease) == 0)
      lost.push_back(lease.first);
    const bool released = holding.state == HoldingState::kReleasing && reported.count(lease) == 0;
    it = released ? node.holdings.erase(it) : std::next(it);
  }
  for (const GroupId& group : asked) AskAgain(turn, group, node.id);
  for (const GroupId& group : lost) {
    const Group* gang = turn.FindGroup(group);
    Launch* launch =
        gang == nullptr || !gang->spec.gang ? nullptr : turn.FindLaunch(gang->spec.launch);
    if (launch != nullptr && launch->on_nodes()) {
      LoseReservation(turn, *launch, node,
                      "node " + node.name + " no longer holds its reservation");
      continue;
    }
    LoseBundles(turn, group, wire::FailureKind::kReservationLost,
                "node " + node.name + " no longer holds it");
  }
}

}  // namespace

void Reconcile(Turn& turn, Node& node, const wire::RegisterNode& report) {
  const NodeId id = node.id;
  ForgetLent(turn, node);
  ReconcileHoldings(turn, node, report);
  ReconcileRanks(turn, node, report);
  ReconcileActors(turn, node, report);
  NoteFree(turn, node, report.free, report.free_version);
  turn.FindNode(id)->settled = false;
}

}  // namespace troupe::head
