// The fourth part of Launches: the ranks' group of a launch that goes on without ranks that died.
#include <algorithm>
#include <utility>

#include "worker/core/launches.h"

namespace troupe::worker {
namespace {

bool Names(const std::vector<wire::Failure>& lost, std::uint32_t rank) {
  return std::any_of(lost.begin(), lost.end(), [rank](const wire::Failure& each) {
    return each.rank == static_cast<std::int32_t>(rank);
  });
}

}  // namespace

void Launches::LosePeers(const wire::PeersLost& word, Instant now, Effects* out) {
  for (auto& [key, run] : runs_) {
    if (std::get<0>(key) != word.launch || std::get<1>(key) != word.epoch || !run.roster) continue;
    if (word.group_epoch < run.group_epoch) continue;
    const bool news = word.group_epoch > run.group_epoch;
    run.group_epoch = word.group_epoch;
    run.hosts_group_store = word.hosts_store;
    if (word.hosts_store && context_.processes.Find(run.store) == nullptr) {
      run.store_port.reset();
      ForkStore(run, out);
    }
    for (const Rank& rank : run.ranks) {
      Process* process = context_.processes.Find(rank.process);
      if (process == nullptr || process->is_program || rank.done || rank.result) continue;
      if (Names(word.lost, rank.place.rank)) {
        context_.processes.Kill(*process, now, out);
      } else if (news && rank.life < word.group_epoch) {
        wire::Message message;
        message.body = word;
        out->push_back(ToProcess{rank.process, std::move(message)});
      }
    }
    CheckJoined(run, out);
  }
}

void Launches::CheckJoined(const Run& run, Effects* out) {
  if (run.group_epoch == 0 || (run.hosts_group_store && !run.store_port)) return;
  wire::GroupJoined joined;
  for (const Rank& rank : run.ranks) {
    if (rank.done || rank.result || rank.group_epoch != run.group_epoch) continue;
    joined.ranks.push_back(rank.place.rank);
  }
  if (joined.ranks.empty()) return;
  joined.launch = run.start.launch;
  joined.epoch = run.start.epoch;
  joined.group_epoch = run.group_epoch;
  if (run.hosts_group_store) {
    joined.store_host = run.interface.address;
    joined.store_port = run.store_port.value_or(0);
  }
  wire::Message message;
  message.body = std::move(joined);
  context_.outbox.Post(std::move(message), out);
}

void Launches::FormGroup(const wire::FormGroup& group, Effects* out) {
  for (auto& [key, run] : runs_) {
    if (std::get<0>(key) != group.launch || std::get<1>(key) != group.epoch) continue;
    if (group.group_epoch < run.group_epoch) continue;
    for (const wire::GroupPlace& place : group.places) {
      for (const Rank& rank : run.ranks) {
        if (rank.place.rank != place.rank || rank.done || rank.result) continue;
        wire::GroupFormed formed;
        formed.group_epoch = group.group_epoch;
        formed.rank = place.group_rank;
        formed.world_size = group.world_size;
        formed.master_host = group.store_host;
        formed.master_port = group.store_port;
        wire::Message message;
        message.body = std::move(formed);
        out->push_back(ToProcess{rank.process, std::move(message)});
      }
    }
  }
}

void Launches::Replace(const wire::ReplaceRanks& order, const std::string& payload, Instant now,
                       Effects* out) {
  for (auto& [key, run] : runs_) {
    if (std::get<0>(key) != order.launch || std::get<1>(key) != order.epoch || !run.roster)
      continue;
    const wire::Message begin =
        BeginOf(run, run.payload_path.empty() ? payload : "", run.payload_path);
    for (const wire::NewRank& each : order.ranks) {
      for (Rank& rank : run.ranks) {
        if (rank.place.rank != each.rank || rank.life >= each.life) continue;
        if (Process* old = context_.processes.Find(rank.process))
          context_.processes.Kill(*old, now, out);
        Rank next;
        next.place = rank.place;
        next.actor = rank.actor;
        next.life = each.life;
        run.group_epoch = std::max(run.group_epoch, each.life);
        rank = std::move(next);
        if (ForkOne(run, rank, begin, out)) continue;
        wire::RankDone done;
        done.outcome = wire::Outcome::kFailed;
        done.failure.cause = "the reservation of this launch was released";
        Report(run, rank, std::move(done), "", now, out);
      }
    }
  }
}

}  // namespace troupe::worker
