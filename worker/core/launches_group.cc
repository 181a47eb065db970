// The fourth part of Launches: the ranks' group of a launch that goes on without ranks that died.
#include <algorithm>
#include <utility>

#include "runtime/base/rank_actor.h"
#include "worker/core/launches.h"

namespace troupe::worker {
namespace {

// A timer that comes so much later was kept from its worker.
constexpr Duration kLateTimer = std::chrono::milliseconds(500);

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
      auto rank = std::find_if(run.ranks.begin(), run.ranks.end(), [&each](const Rank& known) {
        return known.place.rank == each.rank;
      });
      if (rank != run.ranks.end() && rank->life >= each.life) continue;
      if (rank == run.ranks.end()) rank = run.ranks.insert(rank, Rank());
      if (Process* old = context_.processes.Find(rank->process))
        context_.processes.Kill(*old, now, out);
      *rank = NextOf(run, each);
      run.group_epoch = std::max(run.group_epoch, each.life);
      if (ForkOne(run, *rank, begin, out)) continue;
      wire::RankDone done;
      done.outcome = wire::Outcome::kFailed;
      done.failure.kind = wire::FailureKind::kNotStarted;
      done.failure.cause = "the reservation of this launch was released";
      Report(run, *rank, std::move(done), "", now, out);
    }
  }
}

Launches::Rank Launches::NextOf(const Run& run, const wire::NewRank& order) {
  const wire::StartRanks& start = run.start;
  Rank next;
  next.place.rank = order.rank;
  next.place.local_rank = order.local_rank;
  next.place.life = order.life;
  next.actor = RankActorId(start.launch, start.epoch, order.rank);
  next.life = order.life;
  next.lease = ReservationKey{start.group, start.attempt};
  next.gpu_ids = start.gpu_ids;
  if (order.group.IsNil()) return next;
  next.lease = ReservationKey{order.group, order.attempt};
  next.gpu_ids = order.gpu_ids;
  return next;
}

bool Launches::OnWordOfGroup(Run* run, Process& process, wire::Body* body, Effects* out) {
  auto* where = wire::GetIf<wire::ProcessWhere>(body);
  auto* join = wire::GetIf<wire::GroupJoin>(body);
  auto* late = wire::GetIf<wire::GroupLate>(body);
  auto* begun = wire::GetIf<wire::ProcessBegun>(body);
  auto* awaits = wire::GetIf<wire::GroupAwaits>(body);
  if (where == nullptr && join == nullptr && late == nullptr && begun == nullptr &&
      awaits == nullptr)
    return false;
  Rank* rank = run == nullptr ? nullptr : FindRank(*run, process.id);
  if (rank == nullptr || (rank->done && begun == nullptr)) return true;
  if (where != nullptr) SayWhere(*run, *rank, std::move(where->text), out);
  if (join != nullptr) {
    rank->group_epoch = join->group_epoch;
    CheckJoined(*run, out);
  }
  if (late != nullptr) SayLate(*run, *rank, std::move(*late), out);
  if (awaits != nullptr) SayAwaits(*run, *rank, std::move(*awaits), out);
  if (begun != nullptr) SayHowFar(*rank, std::move(*begun), out);
  return true;
}

// Not kept for a head that is away: whoever still waits then says so again.
void Launches::SayLate(const Run& run, const Rank& rank, wire::GroupLate word, Effects* out) const {
  wire::RanksLate late;
  late.launch = run.start.launch;
  late.epoch = run.start.epoch;
  late.group_epoch = word.group_epoch;
  late.rank = rank.place.rank;
  late.torch_group = std::move(word.torch_group);
  late.operation = word.operation;
  late.op = std::move(word.op);
  late.waited_ms = word.waited_ms;
  late.late = std::move(word.late);
  late.waiting = std::move(word.waiting);
  wire::Message message;
  message.body = std::move(late);
  context_.outbox.SendNow(std::move(message), out);
}

void Launches::SayAwaits(const Run& run, const Rank& rank, wire::GroupAwaits word,
                         Effects* out) const {
  wire::RankAwaits awaits;
  awaits.launch = run.start.launch;
  awaits.epoch = run.start.epoch;
  awaits.group_epoch = word.group_epoch;
  awaits.rank = rank.place.rank;
  awaits.torch_group = std::move(word.torch_group);
  awaits.key = std::move(word.key);
  awaits.kind = word.kind;
  awaits.operation = word.operation;
  awaits.op = std::move(word.op);
  awaits.awaited = std::move(word.awaited);
  awaits.where = std::move(word.where);
  wire::Message message;
  message.body = std::move(awaits);
  context_.outbox.SendNow(std::move(message), out);
}

void Launches::TellReturned(const wire::PeersReturned& word, Effects* out) const {
  for (const auto& [key, run] : runs_) {
    if (std::get<0>(key) != word.launch || std::get<1>(key) != word.epoch || !run.roster) continue;
    for (const Rank& rank : run.ranks) {
      const Process* process = context_.processes.Find(rank.process);
      if (process == nullptr || process->is_program || rank.done || rank.result) continue;
      wire::Message message;
      message.body = word;
      out->push_back(ToProcess{rank.process, std::move(message)});
    }
  }
}

void Launches::AskHowFar(const wire::AskBegun& ask, Instant now, Effects* out) {
  for (const auto& [key, run] : runs_) {
    if (std::get<0>(key) != ask.launch || std::get<1>(key) != ask.epoch) continue;
    for (const Rank& rank : run.ranks) {
      const bool returned = rank.done || rank.result.has_value();
      if (rank.place.rank != ask.rank || returned == ask.key.empty()) continue;
      if (context_.processes.Find(rank.process) == nullptr) continue;
      HowFar& asked = how_far_[rank.process];
      asked.answer.launch = ask.launch;
      asked.answer.epoch = ask.epoch;
      asked.answer.rank = ask.rank;
      asked.answer.question = ask.question;
      asked.limit = std::chrono::milliseconds(ask.limit_ms);
      asked.due = now + asked.limit;
      wire::Message message;
      message.body = wire::ProcessAskBegun{ask.question, ask.torch_group, ask.key};
      out->push_back(ToProcess{rank.process, std::move(message)});
    }
  }
}

void Launches::SayHowFar(const Rank& rank, wire::ProcessBegun word, Effects* out) {
  const auto asked = how_far_.find(rank.process);
  if (asked == how_far_.end() || asked->second.answer.question != word.question) return;
  wire::Message message;
  wire::RankBegun answer = std::move(asked->second.answer);
  how_far_.erase(asked);
  answer.begun = word.begun;
  answer.where = std::move(word.where);
  answer.waits = word.waits;
  message.body = std::move(answer);
  context_.outbox.SendNow(std::move(message), out);
}

void Launches::SaySilent(Instant now, Effects* out) {
  for (auto each = how_far_.begin(); each != how_far_.end();) {
    HowFar& asked = each->second;
    // This worker has stood still itself: an answer may wait to be read.
    if (asked.due + kLateTimer < now) asked.due = now + asked.limit;
    if (asked.due > now) {
      ++each;
      continue;
    }
    wire::Message message;
    wire::RankBegun answer = std::move(asked.answer);
    answer.silent = true;
    message.body = std::move(answer);
    context_.outbox.SendNow(std::move(message), out);
    each = how_far_.erase(each);
  }
}

}  // namespace troupe::worker
