#include "head/core/launched/gang/replace.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "head/core/launched/start_orders.h"
#include "head/core/machine/verdict.h"
#include "head/core/placed/waiting.h"

namespace troupe::head {
namespace {

// Returns true if a process may be started there, in this reservation.
bool MayStartOn(const Node* node, const Lease& lease) {
  if (node == nullptr || node->dead || node->leaving || node->draining) return false;
  const auto holding = node->holdings.find(lease);
  return holding != node->holdings.end() && holding->second.state == HoldingState::kHeld;
}

Lease LeaseOf(const Launch& launch, const Rank& rank) {
  return rank.group.IsNil() ? Lease{launch.group, launch.attempt} : Lease{rank.group, rank.attempt};
}

std::vector<const Group*> SparesOf(const State& state, const Launch& launch) {
  std::vector<const Group*> spares;
  for (const auto& [id, group] : state.groups) {
    const wire::GroupSubmitted& spec = group.spec;
    if (group.live() && !spec.replaces.empty() && spec.launch == launch.id &&
        spec.epoch == launch.epoch)
      spares.push_back(&group);
  }
  return spares;
}

// Returns the local rank: on a node with devices, its number among them, of which it sees no
// others; else the next on that node that no rank has.
std::uint32_t LocalRankOn(const Launch& launch, const Group& spare, const wire::BundlePlace& here) {
  std::uint32_t next = 0;
  if (!here.gpu_ids.empty()) {
    for (const wire::BundlePlace& place : spare.places)
      next += place.node == here.node && place.index < here.index ? 1 : 0;
    return next;
  }
  for (const Rank& rank : launch.ranks) {
    if (rank.node == here.node) next = std::max(next, rank.local_rank + 1);
  }
  return next;
}

void Replace(Turn& turn, Launch& launch, wire::RankReplaced replaced) {
  replaced.launch = launch.id;
  replaced.epoch = launch.epoch;
  replaced.group_epoch = GroupEpochOf(launch);
  turn.Append(std::move(replaced));
}

void FillInPlace(Turn& turn, Launch& launch) {
  for (std::uint32_t r = 0; r < launch.ranks.size(); ++r) {
    const Rank& rank = launch.ranks[r];
    if (!Died(launch, r) || !MayStartOn(turn.SeeNode(rank.node), LeaseOf(launch, rank))) continue;
    wire::RankReplaced replaced;
    replaced.rank = r;
    Replace(turn, launch, std::move(replaced));
  }
}

void FillFromSpares(Turn& turn, Launch& launch) {
  for (const Group* spare : SparesOf(turn.state, launch)) {
    if (spare->state != wire::GroupState::kCreated) continue;
    for (const wire::BundlePlace& place : spare->places) {
      if (place.index >= spare->spec.replaces.size()) continue;
      const std::uint32_t r = spare->spec.replaces[place.index];
      if (r >= launch.ranks.size() || !Died(launch, r)) continue;
      if (!MayStartOn(turn.SeeNode(place.node), {spare->spec.group, spare->attempt})) continue;
      wire::RankReplaced replaced;
      replaced.rank = r;
      replaced.node = place.node;
      replaced.local_rank = LocalRankOn(launch, *spare, place);
      replaced.group = spare->spec.group;
      replaced.attempt = spare->attempt;
      Replace(turn, launch, std::move(replaced));
    }
  }
}

void QueueSpares(Turn& turn, const Launch& launch) {
  std::set<std::uint32_t> wanted;
  for (std::uint32_t r = 0; r < launch.ranks.size(); ++r) {
    if (Died(launch, r)) wanted.insert(r);
  }
  for (const Group* spare : SparesOf(turn.state, launch)) {
    if (spare->state == wire::GroupState::kCreated) continue;
    for (const std::uint32_t r : spare->spec.replaces) wanted.erase(r);
  }
  const Group* gang = turn.FindGroup(launch.group);
  if (wanted.empty() || gang == nullptr) return;
  wire::GroupSubmitted spare;
  spare.group = GroupId::Random(turn.random);
  spare.strategy = wire::Strategy::kPack;
  spare.gpu_type = gang->spec.gpu_type;
  spare.where.labels = gang->spec.where.labels;
  spare.priority = gang->spec.priority;
  spare.user = launch.user;
  spare.launch = launch.id;
  spare.epoch = launch.epoch;
  spare.submitted_us = turn.wall_us;
  spare.infeasible_waits = true;  // a node that joins may hold it
  for (const std::uint32_t r : wanted) {
    wire::Bundle bundle;
    bundle.index = static_cast<std::uint32_t>(spare.replaces.size());
    bundle.resources = launch.spec.per_rank;
    spare.bundles.push_back(std::move(bundle));
    spare.replaces.push_back(r);
  }
  turn.Append(std::move(spare));
  turn.state.dirty = true;
}

// Returns true if this node came to the launch after ranks died elsewhere: no attempt began on it.
bool Joined(const Launch& launch, const NodeId& node) {
  return std::none_of(launch.ranks.begin(), launch.ranks.end(), [&node](const Rank& rank) {
    return rank.node == node && rank.group.IsNil();
  });
}

std::vector<std::uint32_t> DevicesOf(const Turn& turn, const Rank& rank) {
  const auto group = turn.state.groups.find(rank.group);
  if (rank.group.IsNil() || group == turn.state.groups.end()) return {};
  std::vector<std::uint32_t> devices;
  for (const wire::BundlePlace& place : group->second.places) {
    if (place.node == rank.node)
      devices.insert(devices.end(), place.gpu_ids.begin(), place.gpu_ids.end());
  }
  return devices;
}

}  // namespace

bool Replaces(const Launch& launch) {
  return launch.spec.on_rank_death == wire::RankDeath::kReplace &&
         launch.phase == wire::LaunchState::kRunning && launch.on_nodes() &&
         launch.ending.step == Ending::Step::kNo;
}

bool AnyPlaceIsEmpty(const Launch& launch) {
  if (launch.spec.on_rank_death != wire::RankDeath::kReplace) return false;
  for (std::size_t r = 0; r < launch.ranks.size(); ++r) {
    if (Died(launch, r)) return true;
  }
  return false;
}

void FillPlaces(Turn& turn, Launch& launch) {
  if (!Replaces(launch)) return;
  FillInPlace(turn, launch);
  FillFromSpares(turn, launch);
  QueueSpares(turn, launch);
}

void SendReplacements(Turn& turn, const Launch& launch, const NodeId& node, std::uint64_t since) {
  wire::ReplaceRanks order;
  order.launch = launch.id;
  order.epoch = launch.epoch;
  for (std::uint32_t r = 0; r < launch.ranks.size(); ++r) {
    const Rank& rank = launch.ranks[r];
    if (rank.node != node || rank.done.outcome != wire::Outcome::kNone || rank.life < since ||
        rank.life == 0)
      continue;
    wire::NewRank fresh;
    fresh.rank = r;
    fresh.life = rank.life;
    fresh.local_rank = rank.local_rank;
    fresh.group = rank.group;
    fresh.attempt = rank.attempt;
    fresh.gpu_ids = DevicesOf(turn, rank);
    order.ranks.push_back(std::move(fresh));
  }
  if (order.ranks.empty()) return;
  if (Joined(launch, node)) {  // no effect where it has begun there: then the order below has
    std::vector<wire::NewRank> together;
    for (const wire::NewRank& each : order.ranks) {
      if (each.group == order.ranks[0].group) together.push_back(each);
    }
    SendStartRanksOf(turn, launch, node, together);
  }
  turn.ToNode(node, std::move(order), launch.payload);
}

wire::Failure PlaceMissing(Turn& turn, const Launch& launch) {
  std::uint32_t rank = 0;
  while (rank + 1 < launch.ranks.size() && !Died(launch, rank)) ++rank;
  wire::Failure failure = launch.ranks[rank].done.failure;
  failure.cause += "; no other process could take its place within " +
                   std::to_string(launch.spec.reform_ms / 1000) +
                   " s (reform_timeout): its node is lost";
  for (const Group* spare : SparesOf(turn.state, launch)) {
    const std::vector<std::uint32_t>& ranks = spare->spec.replaces;
    if (!spare->waiting() || std::count(ranks.begin(), ranks.end(), rank) == 0) continue;
    failure.cause += ", and elsewhere it waited for " + WaitingFor(turn, *spare);
    break;
  }
  return failure;
}

}  // namespace troupe::head
