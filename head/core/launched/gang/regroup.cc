#include "head/core/launched/gang/regroup.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "head/core/launched/ending.h"
#include "head/core/launched/gang/replace.h"
#include "head/core/launched/launch_views.h"
#include "head/core/launched/markers.h"
#include "head/core/launched/rank_ends.h"
#include "head/core/machine/verdict.h"
#include "head/core/machine/wire_convert.h"

namespace troupe::head {
namespace {

bool Runs(const Rank& rank) { return rank.done.outcome == wire::Outcome::kNone; }

// Returns true if a group that is to be formed is waited for.
bool Forming(const Launch& launch) {
  return launch.on_nodes() && launch.ending.step == Ending::Step::kNo &&
         launch.regroup.epoch > launch.regroup.formed.group_epoch;
}

// By node rank; the first of them hosts the store.
std::vector<NodeId> NodesThatRun(const Launch& launch) {
  std::set<NodeId> with_ranks;
  for (const Rank& rank : launch.ranks) {
    if (Runs(rank)) with_ranks.insert(rank.node);
  }
  std::vector<NodeId> nodes;
  for (const NodeId& node : launch.nodes) {
    if (with_ranks.count(node) > 0) nodes.push_back(node);
  }
  return nodes;
}

wire::PeersLost WordOf(const Launch& launch) {
  wire::PeersLost word;
  word.launch = launch.id;
  word.epoch = launch.epoch;
  word.group_epoch = launch.regroup.epoch;
  for (std::size_t r = 0; r < launch.ranks.size(); ++r) {
    if (Died(launch, r)) word.lost.push_back(DeathOf(launch, r));
    if (Replaced(launch.ranks[r])) word.replaced.push_back(DeathOf(launch, r));
  }
  word.limit_ms = launch.spec.reform_ms;
  return word;
}

void SendLost(Turn& turn, Launch& launch) {
  wire::PeersLost word = WordOf(launch);
  const std::vector<NodeId> nodes = NodesThatRun(launch);
  const NodeId store_node = nodes.empty() ? NodeId() : nodes[0];
  if (store_node != launch.regroup.store_node) launch.regroup.store_host.clear();
  launch.regroup.store_node = store_node;
  for (const NodeId& node : nodes) {
    word.hosts_store = node == store_node;
    turn.ToNode(node, word);
  }
}

// Builds each node's message about the group that was formed last, in one pass over its members.
std::map<NodeId, wire::FormGroup> WordsOnFormed(const Launch& launch) {
  const wire::GroupReformed& formed = launch.regroup.formed;
  wire::FormGroup form;
  form.launch = launch.id;
  form.epoch = launch.epoch;
  form.group_epoch = formed.group_epoch;
  form.world_size = static_cast<std::uint32_t>(formed.members.size());
  form.store_host = formed.store_host;
  form.store_port = formed.store_port;
  std::map<NodeId, wire::FormGroup> words;
  for (std::uint32_t place = 0; place < formed.members.size(); ++place) {
    wire::GroupPlace member;
    member.rank = formed.members[place];
    member.group_rank = place;
    if (member.rank >= launch.ranks.size()) continue;
    words.try_emplace(launch.ranks[member.rank].node, form).first->second.places.push_back(member);
  }
  return words;
}

// Counts the running ranks that have not come. Ranks come one by one, so it is counted where one
// ends and where a group begins to be waited for, and down with each that comes.
void CountMissing(Launch& launch) {
  launch.regroup.missing = 0;
  for (std::uint32_t r = 0; r < launch.ranks.size(); ++r) {
    if (Runs(launch.ranks[r]) && launch.regroup.joined.count(r) == 0) ++launch.regroup.missing;
  }
}

// R3: all that run have come, and the store is there that they meet at. Where the node that was to
// have it runs nothing any more, another one has it.
void FormIfComplete(Turn& turn, Launch& launch) {
  if (!Forming(launch) || launch.regroup.missing > 0 || AnyPlaceIsEmpty(launch)) return;
  wire::GroupReformed formed;
  for (std::uint32_t r = 0; r < launch.ranks.size(); ++r) {
    if (Runs(launch.ranks[r])) formed.members.push_back(r);
  }
  if (formed.members.empty()) return;
  if (NodesThatRun(launch)[0] != launch.regroup.store_node) return SendLost(turn, launch);
  if (launch.regroup.store_host.empty()) return;
  formed.launch = launch.id;
  formed.epoch = launch.epoch;
  formed.group_epoch = launch.regroup.epoch;
  formed.store_host = launch.regroup.store_host;
  formed.store_port = launch.regroup.store_port;
  turn.Append(std::move(formed));
  for (auto& [node, form] : WordsOnFormed(launch)) turn.ToNode(node, std::move(form));
  PushLaunch(turn, launch);
}

void Await(Turn& turn, Launch& launch) {
  launch.regroup.epoch = GroupEpochOf(launch);
  launch.regroup.joined.clear();
  CountMissing(launch);
  launch.regroup.store_node = NodeId();
  launch.regroup.store_host.clear();
  launch.regroup.store_port = 0;
  launch.regroup.due = turn.now + std::chrono::milliseconds(launch.spec.reform_ms);
  turn.Arm(launch.regroup.due, TimerKind::kReform, launch.id);
}

bool Settled(const Launch& launch) {
  return !AnyPlaceIsEmpty(launch) && std::none_of(launch.ranks.begin(), launch.ranks.end(), Runs);
}

void Tell(Turn& turn, Launch& launch) {
  SendLost(turn, launch);
  for (const NodeId& node : NodesThatRun(launch))
    SendReplacements(turn, launch, node, launch.regroup.formed.group_epoch + 1);
  PushLaunch(turn, launch);
}

}  // namespace

wire::Failure DeathOf(const Launch& launch, std::size_t rank) {
  wire::Failure failure = launch.ranks[rank].done.failure;
  failure.rank = static_cast<std::int32_t>(rank);
  failure.exit_code = ExitCodeOf(failure);
  failure.traceback.clear();
  failure.log_tail.clear();
  return failure;
}

void RegroupAfter(Turn& turn, Launch& launch) {
  if (launch.spec.on_rank_death == wire::RankDeath::kFail || !launch.on_nodes()) return;
  if (GroupEpochOf(launch) > std::max<std::uint64_t>(launch.regroup.epoch, 1)) {
    FillPlaces(turn, launch);
    if (!Settled(launch)) {
      Await(turn, launch);
      Tell(turn, launch);
    }
  }
  if (Settled(launch)) {  // R5: and the launch is not failing
    Verdict verdict;
    verdict.outcome = wire::Outcome::kSucceeded;
    return WriteMarker(turn, launch, std::move(verdict));
  }
  CountMissing(launch);
  FormIfComplete(turn, launch);
}

void RefillPlaces(Turn& turn, Launch& launch) {
  FillPlaces(turn, launch);
  CountMissing(launch);
  Tell(turn, launch);
}

void OnGroupJoined(Turn& turn, Node& node, const wire::GroupJoined& message) {
  Launch* launch = turn.FindLaunch(message.launch);
  if (launch == nullptr || !launch->on_nodes() || launch->epoch != message.epoch) return;
  if (!Forming(*launch) || message.group_epoch != launch->regroup.epoch) {
    if (launch->ending.step == Ending::Step::kNo) ResumeRegroupOn(turn, *launch, node.id);
    return;
  }
  for (const std::uint32_t r : message.ranks) {
    if (r >= launch->ranks.size() || launch->ranks[r].node != node.id) continue;
    if (Runs(launch->ranks[r]) && launch->regroup.joined.insert(r).second)
      --launch->regroup.missing;
  }
  if (launch->regroup.store_node == node.id) {
    launch->regroup.store_host = message.store_host;
    launch->regroup.store_port = message.store_port;
  }
  FormIfComplete(turn, *launch);
}

void ResumeRegroupOn(Turn& turn, const Launch& launch, const NodeId& node) {
  if (launch.regroup.epoch <= launch.regroup.formed.group_epoch) {
    if (launch.regroup.formed.group_epoch == 0) return;
    auto words = WordsOnFormed(launch);
    const auto word = words.find(node);
    if (word != words.end()) turn.ToNode(node, std::move(word->second));
    return;
  }
  const std::vector<NodeId> nodes = NodesThatRun(launch);
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) return;
  wire::PeersLost word = WordOf(launch);
  word.hosts_store = launch.regroup.store_node == node;
  turn.ToNode(node, std::move(word));
  SendReplacements(turn, launch, node, launch.regroup.formed.group_epoch + 1);
}

void OnReformTimer(Turn& turn, const LaunchId& id) {
  Launch* launch = turn.FindLaunch(id);
  if (launch == nullptr || !Forming(*launch) || turn.now < launch->regroup.due) return;
  if (AnyPlaceIsEmpty(*launch)) return FailEpoch(turn, *launch, PlaceMissing(turn, *launch));
  const std::string cause =
      "it did not come to the re-form of the ranks' group (epoch " +
      std::to_string(launch->regroup.epoch) + ") within " +
      std::to_string(launch->spec.reform_ms / 1000) +
      " s of another rank's death: reform_timeout= says how long that may take";
  const std::set<std::uint32_t> joined = launch->regroup.joined;
  for (std::uint32_t r = 0; r < launch->ranks.size(); ++r) {
    if (!Runs(launch->ranks[r]) || joined.count(r) > 0) continue;
    FailRank(turn, *launch,
             FailureOn(turn, *launch, static_cast<std::int32_t>(r),
                       wire::FailureKind::kMissedReform, cause));
  }
  OnRankEnded(turn, *launch);  // R4
}

bool GoesOnAfterDeaths(const Launch& launch) {
  return launch.on_nodes() && launch.spec.on_rank_death != wire::RankDeath::kFail &&
         launch.phase == wire::LaunchState::kRunning && !Failing(launch);
}

void LoseGang(Turn& turn, Launch& launch, const std::string& why) {
  if (GoesOnAfterDeaths(launch)) return;
  FailEpoch(turn, launch, FailureOn(turn, launch, -1, wire::FailureKind::kReservationLost, why));
}

void ResumeRegroups(Turn& turn) {
  for (auto& [id, launch] : turn.state.launches) {
    if (!launch.on_nodes() || launch.spec.on_rank_death == wire::RankDeath::kFail) continue;
    const std::uint64_t epoch = GroupEpochOf(launch);
    launch.regroup.epoch = launch.regroup.formed.group_epoch;
    if (epoch <= std::max<std::uint64_t>(launch.regroup.formed.group_epoch, 1)) continue;
    FillPlaces(turn, launch);
    Await(turn, launch);
    const std::vector<NodeId> nodes = NodesThatRun(launch);
    if (!nodes.empty()) launch.regroup.store_node = nodes[0];
  }
}

}  // namespace troupe::head
