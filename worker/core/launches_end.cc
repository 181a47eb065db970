// The second half of Launches: results, ends, and what must be repeated until it is acknowledged.
#include <algorithm>
#include <csignal>
#include <iterator>
#include <utility>

#include "worker/core/launches.h"

namespace troupe::worker {
namespace {

constexpr int kFailedExitCode = 1;
constexpr std::size_t kEndedMax = 4096;

std::string RankName(std::int32_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

Launches::Run* Launches::FindRun(const Process& process) {
  const auto found = runs_.find(KeyOf(process));
  return found == runs_.end() ? nullptr : &found->second;
}

Launches::Rank* Launches::FindRank(Run& run, ProcessId process) {
  for (Rank& rank : run.ranks) {
    if (rank.process == process) return &rank;
  }
  return nullptr;
}

bool Launches::OnMessage(Process& process, wire::Message message, Instant now, Effects* out) {
  Run* run = FindRun(process);
  if (auto* ready = wire::GetIf<wire::StoreReady>(&message.body)) {
    if (run == nullptr || run->store != process.id) return true;
    run->store_port = ready->port;
    if (run->group_secret.empty()) run->group_secret = std::move(ready->group_secret);
    CheckReady(*run, out);
    CheckJoined(*run, out);
    return true;
  }
  if (OnWordOfGroup(run, process, &message.body, out)) return true;
  auto* prepared = wire::GetIf<wire::RankPrepared>(&message.body);
  auto* result = wire::GetIf<wire::RankResult>(&message.body);
  auto* program = wire::GetIf<wire::RankProgram>(&message.body);
  if (prepared == nullptr && result == nullptr && program == nullptr) return false;
  Rank* rank = run == nullptr ? nullptr : FindRank(*run, process.id);
  if (rank == nullptr || rank->done || rank->result) return true;
  if (program != nullptr) {
    rank->program_value = std::move(message.attachment);
    rank->program = std::move(program->command);
    if (!rank->program.empty()) context_.processes.BecomeProgram(process, now, out);
  } else if (prepared != nullptr) {
    TakePrepared(*run, *rank, process, *prepared, std::move(message.attachment), now, out);
  } else {
    TakeResult(*run, *rank, process, std::move(*result), std::move(message.attachment), now, out);
  }
  return true;
}

void Launches::TakePrepared(Run& run, Rank& rank, Process& process,
                            const wire::RankPrepared& prepared, std::string attachment, Instant now,
                            Effects* out) {
  if (prepared.failure.cause.empty() && prepared.failure.exception_type.empty()) {
    rank.prepared = true;
    if (rank.life != 0 && run.roster) return LetRun(run, rank, out);
    CheckReady(run, out);
    return;
  }
  Result result;
  result.outcome = wire::Outcome::kFailed;
  result.failure = prepared.failure;
  result.attachment = std::move(attachment);
  rank.result = std::move(result);
  wire::ProcessEnd end;
  end.exit_code = kFailedExitCode;
  end.outcome = wire::Outcome::kFailed;
  end.reason = prepared.failure.cause;
  context_.processes.End(process, end, now, out);
}

void Launches::TakeResult(Run& run, Rank& rank, Process& process, wire::RankResult message,
                          std::string attachment, Instant now, Effects* out) {
  Result result;
  result.outcome = message.outcome;
  result.failure = std::move(message.failure);
  result.size_bytes = attachment.size();
  const bool large = message.in_file || attachment.size() > context_.limits.inline_value_bytes_max;
  if (large && message.outcome == wire::Outcome::kSucceeded) {
    result.keeping = true;
    out->push_back(KeepValue{process.id, std::move(attachment), message.in_file});
  } else if (!large) {
    result.sha256 = context_.facts.sha256(attachment);
    result.attachment = std::move(attachment);
  }  // else: an exception too large to travel; its text does
  rank.result = std::move(result);
  ReportResult(run, rank, process, now, out);
}

void Launches::OnValueKept(Process& process, const StatusOr<KeptValue>& kept, Instant now,
                           Effects* out) {
  Run* run = FindRun(process);
  Rank* rank = run == nullptr ? nullptr : FindRank(*run, process.id);
  if (rank == nullptr || !rank->result || !rank->result->keeping) return;
  Result& result = *rank->result;
  result.keeping = false;
  if (kept.ok()) {
    result.kept = true;
    result.sha256 = kept->sha256;
    result.size_bytes = kept->size_bytes;
  } else {
    result.outcome = wire::Outcome::kFailed;
    result.failure.kind = wire::FailureKind::kValueNotKept;
    result.failure.cause = "the value of " + RankName(process.rank) +
                           " could not be kept: " + MessageOf(kept.status());
  }
  ReportResult(*run, *rank, process, now, out);
  OnEnding(process, now, out);
}

// W1: of a rank that was told to stop the end is awaited, for its process may still work on its
// last word.
void Launches::ReportResult(Run& run, Rank& rank, const Process& process, Instant now,
                            Effects* out) {
  if (!rank.done && !rank.result->keeping && !process.ordered) Finish(run, rank, process, now, out);
}

void Launches::OnStartFailed(Process& process, const std::string& error, Instant now,
                             Effects* out) {
  Run* run = FindRun(process);
  if (run == nullptr) return;
  if (run->store == process.id) {
    FailAll(*run, "the rendezvous store did not start: " + error, now, out);
    return;
  }
  Rank* rank = FindRank(*run, process.id);
  if (rank == nullptr || rank->done) return;
  wire::RankDone done;
  done.outcome = process.ordered ? wire::Outcome::kCancelled : wire::Outcome::kFailed;
  done.failure.kind = wire::FailureKind::kNotStarted;
  done.failure.located = true;
  done.failure.cause =
      RankName(process.rank) + " could not be started on " + context_.facts.name + ": " + error;
  done.failure.node_name = context_.facts.name;
  done.failure.host = context_.facts.host;
  Report(*run, *rank, std::move(done), "", now, out);
}

void Launches::OnEnding(Process& process, Instant now, Effects* out) {
  if (!process.exited || !process.drained) return;  // W1
  Run* run = FindRun(process);
  if (run == nullptr) return;
  if (run->store == process.id) {
    if (!process.ordered && !run->ready) {
      FailAll(*run,
              "the rendezvous store ended before the ranks were ready: " + ExitText(process.exit),
              now, out);
    }
    return;
  }
  Rank* rank = FindRank(*run, process.id);
  if (rank == nullptr || (rank->result && rank->result->keeping)) return;
  if (rank->done) {
    NoteHowItLeft(*run, *rank, process, out);
  } else {
    Finish(*run, *rank, process, now, out);
  }
}

void Launches::Finish(Run& run, Rank& rank, const Process& process, Instant now, Effects* out) {
  wire::RankDone done;
  std::string attachment;
  // W10
  if (!rank.result && rank.program_value && !process.ordered && process.exited &&
      process.exit.LeftWell()) {
    Result ended;
    ended.outcome = wire::Outcome::kSucceeded;
    ended.size_bytes = rank.program_value->size();
    ended.sha256 = context_.facts.sha256(*rank.program_value);
    ended.attachment = *std::move(rank.program_value);
    rank.result = std::move(ended);
  }
  if (rank.result) {
    Result& result = *rank.result;
    done.outcome = result.outcome;
    done.failure = std::move(result.failure);
    done.sha256 = std::move(result.sha256);
    done.size_bytes = result.size_bytes;
    done.kept_by_worker = result.kept;
    attachment = std::move(result.attachment);
    // So is a collective that failed once the ranks were told to stop: a neighbour has heard that
    // before this one.
    if (process.ordered && (done.outcome == wire::Outcome::kSucceeded || done.failure.symptom))
      done.outcome = wire::Outcome::kCancelled;
    if (done.outcome == wire::Outcome::kCancelled) {
      done.failure.kind = process.end_kind;
      done.failure.cause = process.end.reason;
      if (process.taken_along) done.outcome = wire::Outcome::kFailed;  // as below
    }
    if (done.outcome == wire::Outcome::kFailed && done.failure.exit_code == 0)
      done.failure.exit_code = kFailedExitCode;
  } else if (process.ordered) {
    // A served rank of a failed launch counts as stopped: the failure is another's.
    const bool served = process.end.outcome == wire::Outcome::kSucceeded;
    done.outcome = served ? wire::Outcome::kSucceeded : wire::Outcome::kCancelled;
    // The launch did not ask for that end, so it failed of it.
    if (process.taken_along) done.outcome = wire::Outcome::kFailed;
    done.failure.kind = process.end_kind;
    done.failure.cause = process.end.reason;
  } else {
    done.outcome = wire::Outcome::kFailed;  // W3
    if (process.exit.signal == 0 && process.exit.exit_code == 0 && process.exit.unknown.empty()) {
      done.failure.kind = wire::FailureKind::kNoValue;
      done.failure.located = true;
      done.failure.cause = RankName(process.rank) + " on " + context_.facts.name +
                           " exited with code 0 without returning a value";
    }
  }
  if (rank.result && done.outcome == wire::Outcome::kSucceeded) {
    done.failure.node_name = context_.facts.name;
    done.failure.host = context_.facts.host;
    done.failure.pid = process.pid;
    done.failure.exit_code = process.exit.exit_code;
    done.failure.peak_rss_kib = process.exit.peak_rss_kib;
  } else {
    ExitInfo exit = process.exit;
    if (rank.result) exit.signal = 0;  // failed before: how it left then is no cause
    DescribeExit(context_.facts, RankName(process.rank), process.pid, exit, &done.failure);
  }
  Report(run, rank, std::move(done), std::move(attachment), now, out);
}

void Launches::Report(const Run& run, Rank& rank, wire::RankDone done, std::string attachment,
                      Instant now, Effects* out) {
  rank.done = true;
  rank.succeeded = done.outcome == wire::Outcome::kSucceeded;
  rank.exit_code = rank.succeeded ? 0 : std::max(done.failure.exit_code, 1);
  done.launch = run.start.launch;
  done.epoch = run.start.epoch;
  done.generation = run.start.generation;
  done.rank = rank.place.rank;
  done.life = rank.life;
  done.failure.rank = static_cast<std::int32_t>(rank.place.rank);
  done.failure.node = context_.node;
  wire::Message message;
  message.body = std::move(done);
  message.attachment = std::move(attachment);
  how_far_.erase(rank.process);
  Unacknowledged& kept = unacknowledged_[{run.start.launch, run.start.epoch, rank.place.rank}];
  kept.done = std::move(message);
  if (run.start.keep_log_bytes > 0) {
    SendLogEnd log;
    log.message = wire::KeepLog{run.start.launch, run.start.epoch, rank.place.rank, 0};
    log.place = PlaceOf(run.start, rank.place.rank);
    log.bytes_max = run.start.keep_log_bytes;
    kept.log = std::move(log);
  }
  SayDone(kept, out);
  if (!repeat_due_) repeat_due_ = now + context_.limits.repeat_every;
  AnswerWithout(rank.process, out);  // W9
  CheckJoined(run, out);
}

void Launches::Acknowledge(const wire::RankDoneAck& ack, Instant now, Effects* out) {
  unacknowledged_.erase({ack.launch, ack.epoch, ack.rank});
  if (unacknowledged_.empty()) repeat_due_.reset();
  for (auto& [key, run] : runs_) {
    if (std::get<0>(key) != ack.launch || std::get<1>(key) != ack.epoch) continue;
    for (const Rank& rank : run.ranks) {
      if (rank.place.rank != ack.rank || !rank.done || rank.succeeded) continue;
      Process* process = context_.processes.Find(rank.process);
      if (process == nullptr) continue;
      wire::ProcessEnd end;  // W8: its cause is known, so its sockets may close
      end.exit_code = rank.exit_code;
      end.outcome = wire::Outcome::kFailed;
      LetLeave(run, *process, std::move(end), now, out);
    }
  }
}

void Launches::End(const wire::EndEpoch& end, Instant now, Effects* out) {
  std::uint64_t& epoch = ending_[end.launch];
  epoch = std::max(epoch, end.epoch);
  RememberEnded(end.launch, end.epoch);
  std::vector<ProcessId> left;
  for (const auto& [id, each] : context_.processes.all()) {
    // The store goes last (CheckEnded), so that a rank on its way out still finds it.
    const bool of_it = each.launch == end.launch && each.epoch <= end.epoch;
    if (of_it && each.kind != wire::ProcessKind::kStore) left.push_back(id);
  }
  for (const ProcessId id : left) EndOne(end, *context_.processes.Find(id), now, out);
  for (auto& [key, run] : runs_) {
    if (std::get<0>(key) == end.launch && std::get<1>(key) <= end.epoch) run.fetching = false;
  }
  CheckEnded(now, out);
}

void Launches::EndOne(const wire::EndEpoch& end, Process& process, Instant now, Effects* out) {
  wire::ProcessEnd order;
  order.exit_code = end.exit_code;
  order.outcome = end.outcome;
  order.reason = end.reason;
  const Run* run = FindRun(process);
  const bool clocked =
      process.ending == Process::Ending::kStopping || process.ending == Process::Ending::kLeaving;
  if (clocked && process.epoch == end.epoch) return;
  if (run == nullptr || process.kind != wire::ProcessKind::kRank) {
    context_.processes.End(process, order, now, out);
    return;
  }
  const Rank* rank = FindRank(*FindRun(process), process.id);
  const bool done = rank != nullptr && rank->done;
  const bool served =
      run->start.mode == wire::LaunchMode::kDriver && end.outcome == wire::Outcome::kSucceeded;
  if (done || served || process.completing) {  // how it leaves changes no outcome any more
    if (done) order.exit_code = rank->exit_code;
    LetLeave(*run, process, std::move(order), now, out);
  } else if (end.grace_ms > 0 && run->roster) {
    wire::ProcessStop stop;
    stop.signal = SIGTERM;
    stop.grace_ms = end.grace_ms;
    stop.reason = end.reason;
    stop.exit_code = end.exit_code;
    context_.processes.Stop(process, stop, now, out);
  } else {
    context_.processes.End(process, order, now, out);
  }
}

void Launches::EndUpTo(const LaunchId& launch, std::uint64_t epoch, const wire::ProcessEnd& end,
                       Instant now, Effects* out) {
  for (const auto& [id, each] : context_.processes.all()) {
    // The store goes last (CheckEnded), so that a rank on its way out still finds it.
    if (each.launch != launch || each.epoch > epoch || each.kind == wire::ProcessKind::kStore)
      continue;
    context_.processes.End(*context_.processes.Find(id), end, now, out);
  }
  for (auto& [key, run] : runs_) {
    if (std::get<0>(key) == launch && std::get<1>(key) <= epoch) run.fetching = false;
  }
}

Launches::Left Launches::LeftOf(const LaunchId& launch, std::uint64_t epoch) const {
  Left left;
  for (const auto& [id, process] : context_.processes.all()) {
    if (process.launch != launch || process.epoch > epoch) continue;
    if (process.kind == wire::ProcessKind::kStore) {
      left.stores.push_back(id);
    } else {
      left.others = true;
    }
  }
  return left;
}

void Launches::CheckEnded(Instant now, Effects* out) {
  for (auto each = ending_.begin(); each != ending_.end();) {
    const auto [launch, epoch] = *each;
    const Left left = LeftOf(launch, epoch);
    if (left.others || !left.stores.empty()) {
      if (!left.others) {
        for (const ProcessId store : left.stores) {
          context_.processes.End(*context_.processes.Find(store), wire::ProcessEnd(), now, out);
        }
      }
      ++each;
      continue;
    }
    for (auto run = runs_.begin(); run != runs_.end();) {
      const auto here = run++;
      if (std::get<0>(here->first) == launch && std::get<1>(here->first) <= epoch) {
        DropRun(here, out);
      }
    }
    each = ending_.erase(each);
    wire::Message message;
    message.body = wire::EpochEnded{launch, epoch};
    context_.outbox.Post(std::move(message), out);  // W5
  }
}

bool Launches::Keeping(const Process& process) const {
  const auto run = runs_.find(KeyOf(process));
  if (run == runs_.end()) return false;
  for (const Rank& rank : run->second.ranks) {
    if (rank.process == process.id) return rank.result && rank.result->keeping;
  }
  return false;
}

void Launches::DropRun(std::map<RunKey, Run>::iterator run, Effects* out) {
  if (run->second.ticket != 0) out->push_back(ForgetBlob{run->second.ticket});
  for (auto each = questions_.begin(); each != questions_.end();) {
    const bool of_it = each->second.answer.launch == std::get<0>(run->first) &&
                       each->second.answer.epoch == std::get<1>(run->first);
    each = of_it ? questions_.erase(each) : std::next(each);
  }
  runs_.erase(run);
}

void Launches::OnGone(Instant now, Effects* out) { CheckEnded(now, out); }

void Launches::RememberEnded(const LaunchId& launch, std::uint64_t epoch) {
  const auto [entry, fresh] = ended_.emplace(launch, epoch);
  if (!fresh) {
    entry->second = std::max(entry->second, epoch);
    return;
  }
  ended_order_.push_back(launch);
  if (ended_order_.size() > kEndedMax) {
    ended_.erase(ended_order_.front());
    ended_order_.pop_front();
  }
}

bool Launches::Ended(const LaunchId& launch, std::uint64_t epoch) const {
  const auto found = ended_.find(launch);
  return found != ended_.end() && epoch <= found->second;
}

void Launches::OnRegistered(Instant now, Effects* out) {
  how_far_.clear();  // another head may have asked
  RepeatDone(now, out);
}

void Launches::RepeatDone(Instant now, Effects* out) {
  for (const auto& [key, each] : unacknowledged_) SayDone(each, out);  // W2
  if (!unacknowledged_.empty()) repeat_due_ = now + context_.limits.repeat_every;
}

void Launches::SayDone(const Unacknowledged& done, Effects* out) const {
  if (done.log && context_.outbox.registered()) out->push_back(*done.log);  // W14
  context_.outbox.SendNow(done.done, out);
}

void Launches::OnTimer(Instant now, Effects* out) {
  SaySilent(now, out);
  if (repeat_due_ && *repeat_due_ <= now) RepeatDone(now, out);
}

std::optional<Instant> Launches::NextDue() const {
  if (!context_.outbox.registered()) return std::nullopt;
  std::optional<Instant> due = repeat_due_;
  for (const auto& [process, asked] : how_far_) {
    if (!due || asked.due < *due) due = asked.due;
  }
  return due;
}

}  // namespace troupe::worker
