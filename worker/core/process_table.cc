#include "worker/core/process_table.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace troupe::worker {
namespace {

constexpr Duration kKillAgain = std::chrono::seconds(1);

}  // namespace

Process& ProcessTable::Add(Process process) {
  const ProcessId id = process.id;
  return processes_.insert_or_assign(id, std::move(process)).first->second;
}

Process* ProcessTable::Find(ProcessId id) {
  const auto found = processes_.find(id);
  return found == processes_.end() ? nullptr : &found->second;
}

void ProcessTable::End(Process& process, const wire::ProcessEnd& end, Instant now,
                       Effects* effects) {
  const bool own =
      process.ending == Process::Ending::kStopping || process.ending == Process::Ending::kLeaving;
  const bool begun = process.ending != Process::Ending::kNo && !own;
  if (begun || process.exited) return;
  process.end = end;
  process.ordered = true;
  if (process.kind == wire::ProcessKind::kStore || process.pid == 0) {
    Kill(process, now, effects);
    return;
  }
  if (process.is_program) {
    Term(process, now, effects);
    return;
  }
  process.ending = Process::Ending::kAsked;
  process.due = now + limits_.ask_grace;
  wire::Message message;
  message.body = end;
  effects->push_back(ToProcess{process.id, std::move(message)});
}

void ProcessTable::Stop(Process& process, const wire::ProcessStop& stop, Instant now,
                        Effects* effects) {
  const bool again = process.ending == Process::Ending::kStopping;
  if (process.exited || (process.ending != Process::Ending::kNo && !again)) return;
  process.ordered = true;
  process.end.exit_code = stop.exit_code;
  process.end.outcome = wire::Outcome::kCancelled;
  process.end.reason = stop.reason;
  if (process.pid == 0 || stop.grace_ms == 0) {
    Kill(process, now, effects);
    return;
  }
  const Instant due = now + std::chrono::milliseconds(stop.grace_ms);
  process.due = again ? std::min(process.due, due) : due;
  process.ending = Process::Ending::kStopping;
  if (again) return;
  process.stop_signal = stop.signal;
  if (process.is_program) {
    effects->push_back(SignalProcess{process.id, stop.signal, true});
    return;
  }
  wire::Message message;
  message.body = stop;
  effects->push_back(ToProcess{process.id, std::move(message)});
}

void ProcessTable::Leave(Process& process, wire::ProcessEnd end, Duration grace, Instant now,
                         Effects* effects) {
  if (process.ending != Process::Ending::kNo || process.exited) return;
  process.ending = Process::Ending::kLeaving;
  process.due = now + grace;
  end.own_time = true;
  process.end = end;
  wire::Message message;
  message.body = std::move(end);
  effects->push_back(ToProcess{process.id, std::move(message)});
}

void ProcessTable::Kill(Process& process, Instant now, Effects* effects) {
  if (process.exited) return;
  process.ordered = true;
  process.ending = Process::Ending::kKilled;
  process.due = now + kKillAgain;
  effects->push_back(SignalProcess{process.id, SIGKILL});
}

void ProcessTable::Term(Process& process, Instant now, Effects* effects) {
  process.ending = Process::Ending::kTermed;
  process.due = now + limits_.term_grace;
  effects->push_back(SignalProcess{process.id, SIGTERM, process.is_program});
}

void ProcessTable::BecomeProgram(Process& process, Instant now, Effects* effects) {
  process.is_program = true;
  if (process.exited) return;
  if (process.ending == Process::Ending::kStopping) {
    effects->push_back(SignalProcess{process.id, process.stop_signal, true});
  } else if (process.ending == Process::Ending::kAsked) {
    Term(process, now, effects);
  }
}

void ProcessTable::OnForked(Process& process, int pid, Instant now, Effects* effects) {
  process.pid = pid;
  if (process.ending == Process::Ending::kKilled) Kill(process, now, effects);
}

void ProcessTable::OnTimer(Instant now, Effects* effects) {
  for (auto& [id, process] : processes_) {
    if (process.exited || process.ending == Process::Ending::kNo || process.due > now) continue;
    if (process.ending == Process::Ending::kAsked) {
      Term(process, now, effects);
    } else {
      Kill(process, now, effects);
    }
  }
}

std::optional<Instant> ProcessTable::NextDue() const {
  std::optional<Instant> due;
  for (const auto& [id, process] : processes_) {
    if (process.exited || process.ending == Process::Ending::kNo) continue;
    due = due ? std::min(*due, process.due) : process.due;
  }
  return due;
}

}  // namespace troupe::worker
