// The third part of Launches: ranks that are told to stop, that may leave, and what the head asks
// of them.
#include <csignal>
#include <utility>

#include "worker/core/launches.h"

namespace troupe::worker {
namespace {

std::string HowItLeft(const Process& process) {
  if (process.ending == Process::Ending::kKilled)
    return "did not end in the time it had and was killed";
  return process.exit.signal != 0 ? "was ended by " + SignalName(process.exit.signal)
                                  : "left with " + ExitText(process.exit);
}

}  // namespace

void Launches::Stop(const wire::StopRanks& stop, Instant now, Effects* out) {
  wire::ProcessStop order;
  order.signal = stop.signal;
  order.grace_ms = stop.grace_ms;
  order.reason = stop.reason;
  order.exit_code = stop.exit_code;
  order.where = stop.where;
  order.peer_lost = stop.outcome == wire::Outcome::kFailed;
  wire::ProcessEnd end;
  end.exit_code = stop.exit_code;
  end.outcome = wire::Outcome::kCancelled;
  end.reason = stop.reason;
  for (auto& [key, run] : runs_) {
    if (std::get<0>(key) != stop.launch || std::get<1>(key) != stop.epoch) continue;
    run.fetching = false;
    for (Rank& rank : run.ranks) {
      if (rank.done || rank.result) continue;
      Process* process = context_.processes.Find(rank.process);
      const bool drains = process != nullptr && process->taken_along &&
                          process->ending == Process::Ending::kStopping;
      if (drains && stop.grace_ms > 0) continue;  // a sibling's end is no reason for less time
      if (process == nullptr) {
        wire::RankDone done;
        done.outcome = wire::Outcome::kCancelled;
        done.failure.kind = wire::FailureKind::kStopped;
        done.failure.cause = stop.reason;
        Report(run, rank, std::move(done), "", now, out);
      } else if (!run.roster) {
        context_.processes.End(*process, end, now, out);
      } else if (RunsCode(run, rank, *process)) {
        if (stop.where && !rank.program.empty())  // cannot be asked
          SayWhere(run, rank, "  it runs a program: " + rank.program + "\n", out);
        context_.processes.Stop(*process, order, now, out);
      } else if (stop.where || order.peer_lost) {  // serves the driver, which may wait for it
        wire::Message message;
        wire::ProcessStop no_signal;
        no_signal.where = stop.where;
        no_signal.peer_lost = order.peer_lost;
        message.body = std::move(no_signal);
        out->push_back(ToProcess{process->id, std::move(message)});
      }
    }
  }
}

void Launches::SayWhere(const Run& run, const Rank& rank, std::string text, Effects* out) {
  wire::RankWhere where;
  where.launch = run.start.launch;
  where.epoch = run.start.epoch;
  where.rank = rank.place.rank;
  where.text = std::move(text);
  wire::Message message;
  message.body = std::move(where);
  context_.outbox.Post(std::move(message), out);
}

// Ranks that serve a driver have no code of their own to stop: they are the driver's until the
// marker.
bool Launches::RunsCode(const Run& run, const Rank& rank, const Process& process) {
  const bool serves = run.start.mode == wire::LaunchMode::kDriver && rank.place.rank != 0;
  return run.roster && !rank.done && !rank.result && !serves && !process.completing;
}

bool Launches::Drain(Process& process, const std::string& reason, Instant now, Effects* out) {
  Run* run = FindRun(process);
  const Rank* rank = run == nullptr ? nullptr : FindRank(*run, process.id);
  if (rank == nullptr || !RunsCode(*run, *rank, process)) return false;
  wire::ProcessStop order;
  order.signal = SIGTERM;
  order.grace_ms = static_cast<std::uint32_t>(Millis(context_.limits.drain_grace));
  order.reason = reason;
  order.exit_code = 1;
  context_.processes.Stop(process, order, now, out);
  return true;
}

void Launches::Ask(const wire::AskRanks& ask, Effects* out) {
  Question question;
  question.answer.launch = ask.launch;
  question.answer.epoch = ask.epoch;
  question.answer.question = ask.question;
  SweepProcesses sweep;
  sweep.ticket = context_.next_ticket++;
  for (const auto& [key, run] : runs_) {
    if (std::get<0>(key) != ask.launch || std::get<1>(key) != ask.epoch) continue;
    for (const Rank& rank : run.ranks) {
      const Process* process = rank.done ? nullptr : context_.processes.Find(rank.process);
      if (process == nullptr) continue;
      sweep.processes.push_back(rank.process);
      question.awaited.insert(rank.process);
    }
  }
  questions_[sweep.ticket] = std::move(question);
  out->push_back(std::move(sweep));
}

void Launches::OnSwept(std::uint64_t ticket, const std::vector<ProcessId>& exiting, Effects* out) {
  const auto found = questions_.find(ticket);
  if (found == questions_.end()) return;
  const std::set<ProcessId> exits(exiting.begin(), exiting.end());
  std::set<ProcessId> awaited;
  for (const ProcessId id : found->second.awaited) {
    Process* process = context_.processes.Find(id);
    Run* run = process == nullptr ? nullptr : FindRun(*process);
    const Rank* rank = run == nullptr ? nullptr : FindRank(*run, id);
    if (rank == nullptr || rank->done) continue;
    if (exits.count(id) > 0 || process->exited || (rank->result && rank->result->keeping))
      awaited.insert(id);
  }
  found->second.awaited = std::move(awaited);
  AnswerWithout(ProcessId(), out);
}

void Launches::AnswerWithout(ProcessId id, Effects* out) {
  for (auto each = questions_.begin(); each != questions_.end();) {
    Question& question = each->second;
    question.awaited.erase(id);
    if (!question.awaited.empty()) {
      ++each;
      continue;
    }
    wire::Message message;
    message.body = question.answer;
    context_.outbox.SendNow(std::move(message), out);
    each = questions_.erase(each);
  }
}

void Launches::LetLeave(const Run& run, Process& process, wire::ProcessEnd end, Instant now,
                        Effects* out) {
  const Duration grace =
      std::chrono::milliseconds(run.start.exit_grace_ms) + context_.limits.leave_margin;
  context_.processes.Leave(process, std::move(end), grace, now, out);
}

void Launches::LeaveWithoutHead(Instant now, Effects* out) {
  for (const auto& [key, run] : runs_) {
    for (const Rank& rank : run.ranks) {
      Process* process = rank.done ? context_.processes.Find(rank.process) : nullptr;
      if (process == nullptr) continue;
      wire::ProcessEnd end;
      end.exit_code = rank.exit_code;
      end.reason = "the head is away";
      LetLeave(run, *process, std::move(end), now, out);
    }
  }
}

bool Launches::AnyWaits() const {
  for (const auto& [key, run] : runs_) {
    for (const Rank& rank : run.ranks) {
      const Process* process = rank.done ? context_.processes.Find(rank.process) : nullptr;
      if (process != nullptr && !process->exited && process->ending == Process::Ending::kNo)
        return true;
    }
  }
  return false;
}

void Launches::NoteHowItLeft(const Run& run, const Rank& rank, const Process& process,
                             Effects* out) {
  const bool well = process.exit.LeftWell() || process.ending == Process::Ending::kAsked ||
                    process.ending == Process::Ending::kTermed;
  if (!rank.succeeded || well) return;
  wire::RankLeft left;
  left.launch = run.start.launch;
  left.epoch = run.start.epoch;
  left.rank = rank.place.rank;
  left.warning = "rank " + std::to_string(rank.place.rank) + " on " + context_.facts.name +
                 " returned its value, and then " + HowItLeft(process);
  wire::Message message;
  message.body = std::move(left);
  context_.outbox.Post(std::move(message), out);
}

}  // namespace troupe::worker
