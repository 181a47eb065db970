// The part of WorkerCore that is told what became of processes.
#include <utility>

#include "worker/core/worker_core.h"

namespace troupe::worker {

Effects WorkerCore::OnZygote(bool ready, const std::string& python_version, Instant now) {
  zygote_ready_ = ready;
  if (!python_version.empty()) context_.facts.python_version = python_version;
  return Done({}, now);
}

Effects WorkerCore::OnPreimports(std::vector<std::string> each, Instant now) {
  preimports_ = std::move(each);
  return Done({}, now);
}

Effects WorkerCore::OnMeasured(std::vector<wire::Measure> measures, Instant now) {
  Effects out;
  wire::Message message;
  message.body = wire::NodeMeasures{std::move(measures)};
  context_.outbox.SendNow(std::move(message), &out);
  return Done(std::move(out), now);
}

Effects WorkerCore::OnForked(ProcessId id, int pid, Instant now, std::string started_from) {
  Effects out;
  if (Process* process = context_.processes.Find(id)) {
    process->started_from = std::move(started_from);
    context_.processes.OnForked(*process, pid, now, &out);
  }
  return Done(std::move(out), now);
}

Effects WorkerCore::OnStartFailed(ProcessId id, const std::string& error, Instant now) {
  Effects out;
  Process* process = context_.processes.Find(id);
  if (process == nullptr) return Done(std::move(out), now);
  if (process->kind == wire::ProcessKind::kActor) {
    actors_.OnStartFailed(*process, error, &out);
  } else {
    launches_.OnStartFailed(*process, error, now, &out);
  }
  process->exited = process->drained = process->gone = true;
  RemoveIfOver(*process, now, &out);
  return Done(std::move(out), now);
}

Effects WorkerCore::OnProcessMessage(ProcessId id, wire::Message message, Instant now) {
  Effects out;
  Process* process = context_.processes.Find(id);
  if (process == nullptr) return Done(std::move(out), now);
  const std::string_view kind = wire::NameOf(message.body);
  if (message.id != 0) {
    if (wire::Holds<wire::Complete>(message.body)) process->completing = true;
    relays_.Up(*process, std::move(message), context_.outbox, &out);
    return Done(std::move(out), now);
  }
  // The process was revoked before it was there.
  const bool begins =
      wire::Holds<wire::ActorReady>(message.body) || wire::Holds<wire::RankPrepared>(message.body);
  if (begins && !revoked_.tokens.empty())
    out.push_back(ToProcess{id, wire::Message{0, 0, revoked_, {}}});
  const bool taken = process->kind == wire::ProcessKind::kActor
                         ? actors_.OnMessage(*process, std::move(message), now, &out)
                         : launches_.OnMessage(*process, std::move(message), now, &out);
  if (!taken && !std::exchange(process->misspoke, true)) out.push_back(NotTaken{id, kind});
  return Done(std::move(out), now);
}

void WorkerCore::OnRevoked(wire::Revoked revoked, Effects* out) {
  revoked_ = std::move(revoked);
  out->push_back(RevokeTokens{revoked_.tokens});
  for (const auto& [id, process] : context_.processes.all()) {
    if (process.pid != 0 && !process.exited)
      out->push_back(ToProcess{id, wire::Message{0, 0, revoked_, {}}});
  }
}

Effects WorkerCore::OnExited(ProcessId id, ExitInfo exit, Instant now) {
  Effects out;
  Process* process = context_.processes.Find(id);
  if (process == nullptr || process->exited) return Done(std::move(out), now);
  process->exited = true;
  process->exit = std::move(exit);
  launches_.OnEnding(*process, now, &out);
  actors_.OnEnding(*process, &out);
  RemoveIfOver(*process, now, &out);
  return Done(std::move(out), now);
}

Effects WorkerCore::OnDrained(ProcessId id, Instant now) {
  Effects out;
  Process* process = context_.processes.Find(id);
  if (process == nullptr || process->drained) return Done(std::move(out), now);
  process->drained = true;
  launches_.OnEnding(*process, now, &out);
  actors_.OnEnding(*process, &out);
  RemoveIfOver(*process, now, &out);
  return Done(std::move(out), now);
}

Effects WorkerCore::OnGone(ProcessId id, Instant now) {
  Effects out;
  Process* process = context_.processes.Find(id);
  if (process == nullptr) return Done(std::move(out), now);
  process->gone = true;
  RemoveIfOver(*process, now, &out);
  return Done(std::move(out), now);
}

Effects WorkerCore::OnSwept(std::uint64_t ticket, const std::vector<ProcessId>& exiting,
                            Instant now) {
  Effects out;
  launches_.OnSwept(ticket, exiting, &out);
  return Done(std::move(out), now);
}

void WorkerCore::RemoveIfOver(Process& process, Instant now, Effects* out) {
  if (!process.exited || !process.drained || !process.gone || launches_.Keeping(process)) return;
  const ProcessId id = process.id;
  relays_.OnGone(id);
  wire::Message message;
  message.body = wire::ProcessGone{id};
  context_.outbox.Post(std::move(message), out);
  context_.processes.Remove(id);
  context_.leases.Detach(id);
  launches_.OnGone(now, out);
  PostFreed(out);
}

std::string WorkerCore::CallSocketOf(ProcessId id) const {
  const auto found = context_.processes.all().find(id);
  if (found == context_.processes.all().end() || found->second.exited) return "";
  return found->second.socket_path;
}

Effects WorkerCore::OnBlob(std::uint64_t ticket, const StatusOr<std::string>& path, Instant now) {
  Effects out;
  if (!launches_.OnBlob(ticket, path, now, &out) && !actors_.OnBlob(ticket, path, &out)) {
    out.push_back(ForgetBlob{ticket});  // nobody wants it any more
  }
  return Done(std::move(out), now);
}

Effects WorkerCore::OnValueKept(ProcessId id, const StatusOr<KeptValue>& kept, Instant now) {
  Effects out;
  if (Process* process = context_.processes.Find(id)) {
    launches_.OnValueKept(*process, kept, now, &out);
    RemoveIfOver(*process, now, &out);
  }
  return Done(std::move(out), now);
}

}  // namespace troupe::worker
