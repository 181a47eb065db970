#include "worker/core/actors.h"

#include <algorithm>
#include <utility>

#include "worker/core/environment.h"

namespace troupe::worker {
namespace {

constexpr std::size_t kSeenMax = 65536;
// How often within the fence's time an actor's own one is moved; it lies that much later, too.
constexpr int kLeasesPerFence = 12;

std::string ActorText(const wire::StartActor& start) {
  std::string text = "actor " + start.class_name;
  return start.name.empty() ? text + " " + start.actor.Short() : text + " \"" + start.name + "\"";
}

}  // namespace

bool Actors::Seen(const ActorId& actor, std::uint64_t incarnation) {
  const auto [entry, fresh] = seen_.emplace(actor, incarnation);
  if (!fresh) {
    if (incarnation <= entry->second) return true;
    entry->second = incarnation;
    return false;
  }
  seen_order_.push_back(actor);
  if (seen_order_.size() > kSeenMax) {
    seen_.erase(seen_order_.front());
    seen_order_.pop_front();
  }
  return false;
}

void Actors::Start(const wire::StartActor& start, const std::string& payload,
                   const std::string& refusal, Instant now, Effects* out) {
  const auto known = actors_.find(start.actor);
  if (known != actors_.end() && known->second.start.incarnation == start.incarnation) {
    if (known->second.ready || known->second.awaits) PostStarted(known->second, out);
    return;
  }
  if (Seen(start.actor, start.incarnation)) return;
  if (known != actors_.end()) {  // a higher incarnation: the old one is over
    if (Process* old = context_.processes.Find(known->second.process)) {
      context_.processes.Kill(*old, now, out);
    }
    Forget(start.actor, out);
  }
  Actor actor;
  actor.start = start;
  wire::Failure refused;
  const std::string& wanted = start.environment.python_version;
  const std::string& here = context_.facts.python_version;
  if (!refusal.empty()) {
    refused.cause = refusal;
  } else if (!wanted.empty() && !here.empty() && wanted != here) {
    refused.cause = "the caller runs Python " + wanted + ", node " + context_.facts.name +
                    " runs Python " + here;
  } else if (!start.group.IsNil() &&
             !context_.leases.Usable(ReservationKey{start.group, start.attempt})) {
    refused.cause = "node " + context_.facts.name + " does not hold its reservation";
  }
  if (!refused.cause.empty()) {
    refused.kind = wire::FailureKind::kNotStarted;
    PostEnded(actor, std::move(refused), out);
    return;
  }
  Actor& kept = actors_[start.actor] = std::move(actor);
  if (start.payload.sha256.empty()) {
    Spawn(kept, payload, "", out);
    return;
  }
  kept.ticket = context_.next_ticket++;
  kept.fetching = true;
  out->push_back(FetchBlob{kept.ticket, start.payload});
}

bool Actors::OnBlob(std::uint64_t ticket, const StatusOr<std::string>& path, Effects* out) {
  for (auto& [id, actor] : actors_) {
    if (actor.ticket != ticket || !actor.fetching) continue;
    actor.fetching = false;
    if (path.ok()) {
      Spawn(actor, "", *path, out);
      return true;
    }
    wire::Failure failure;
    failure.kind = wire::FailureKind::kNotStarted;
    failure.cause = "its class and arguments could not be fetched: " + MessageOf(path.status());
    PostEnded(actor, std::move(failure), out);
    Forget(ActorId(id), out);
    return true;
  }
  return false;
}

void Actors::Spawn(Actor& actor, const std::string& payload, const std::string& payload_path,
                   Effects* out) {
  const wire::StartActor start = actor.start;
  const ProcessId id = ProcessId::Random(context_.random);
  const ReservationKey lease{start.group, start.attempt};
  if (!start.group.IsNil() && !context_.leases.Attach(lease, id)) {
    wire::Failure failure;
    failure.kind = wire::FailureKind::kNotStarted;
    failure.cause = "its reservation was released while it started";
    PostEnded(actor, std::move(failure), out);
    Forget(start.actor, out);
    return;
  }
  actor.process = id;
  Process process;
  process.id = id;
  process.kind = wire::ProcessKind::kActor;
  process.launch = start.launch;
  process.epoch = start.epoch;
  process.actor = start.actor;
  process.socket_path = context_.SocketPath(id);

  StartProcess effect;
  effect.request.process = id;
  effect.request.kind = wire::ProcessKind::kActor;
  effect.request.env = ActorEnvironment(context_.facts, start, id);
  effect.request.working_directory = start.environment.working_directory;
  effect.request.import_path = start.environment.import_path;
  effect.request.title = "troupe: " + ActorText(start);
  effect.request.threads = ActorThreads(start);
  effect.memory_bytes = context_.leases.MemoryOf(lease, start.bundle);
  effect.fresh_interpreter = start.environment.fresh_interpreter;
  effect.program = start.environment.program;
  if (effect.program.empty())
    effect.zygote = ZygoteKeyOf(context_.facts.base_environment, start.environment);
  effect.may_exec = true;
  effect.has_begin = true;
  wire::ActorBegin begin;
  begin.actor = start.actor;
  begin.incarnation = start.incarnation;
  begin.name = start.name;
  begin.class_name = start.class_name;
  begin.namespace_ = start.namespace_;
  begin.socket_path = process.socket_path;
  begin.max_concurrency = start.max_concurrency;
  begin.cluster_id = context_.cluster;
  begin.node = context_.node;
  begin.launch = start.launch;
  begin.epoch = start.epoch;
  begin.gpu_ids = start.gpu_ids;
  begin.node_name = context_.facts.name;
  begin.boot_id = context_.facts.boot_id;
  begin.group = start.group;
  begin.payload_path = payload_path;
  effect.begin.body = std::move(begin);
  effect.begin.attachment = payload;
  effect.socket_path = process.socket_path;
  effect.log = LogPlace{start.actor.Hex(), "actor"};
  context_.processes.Add(std::move(process));
  out->push_back(std::move(effect));
  SendLease(actor, out);
}

void Actors::End(const wire::EndActor& end, Instant now, Effects* out) {
  const auto found = actors_.find(end.actor);
  if (found == actors_.end()) {
    Seen(end.actor, end.incarnation);  // a start that comes later is refused
    return;
  }
  Actor& actor = found->second;
  if (end.incarnation < actor.start.incarnation) return;
  actor.graceful = end.graceful;
  actor.end_reason = end.reason;
  actor.end_kind = end.kind;
  Process* process = context_.processes.Find(actor.process);
  if (process == nullptr) {  // the payload is still on the way
    wire::Failure failure;
    failure.kind = end.kind;
    failure.cause = end.reason;
    PostEnded(actor, std::move(failure), out);
    Forget(end.actor, out);
    return;
  }
  wire::ProcessEnd order;
  order.reason = end.reason;
  if (end.graceful) {
    context_.processes.End(*process, order, now, out);
  } else {
    context_.processes.Kill(*process, now, out);
  }
}

bool Actors::OnMessage(Process& process, wire::Message message, Instant now, Effects* out) {
  if (const auto* lent = wire::GetIf<wire::CpuLent>(&message.body)) {
    OnLent(process, *lent, out);
    return true;
  }
  if (const auto* result = wire::GetIf<wire::RankResult>(&message.body)) {
    if (Actor* const over = Of(process))
      over->leaves = result->outcome == wire::Outcome::kSucceeded;
    return true;
  }
  auto* ready = wire::GetIf<wire::ActorReady>(&message.body);
  if (ready == nullptr) return false;
  Actor* actor = Of(process);
  if (actor == nullptr || actor->ready) return true;
  if (ready->awaits) {
    actor->awaits = true;
    PostStarted(*actor, out);
    return true;
  }
  if (!ready->failed) {
    actor->ready = true;
    actor->repr_name = std::move(ready->repr_name);
    PostStarted(*actor, out);
    return true;
  }
  actor->failure = std::move(ready->failure);
  if (message.attachment.size() <= context_.limits.inline_value_bytes_max) {
    actor->attachment = std::move(message.attachment);
  }
  wire::ProcessEnd order;
  order.exit_code = 1;
  order.outcome = wire::Outcome::kFailed;
  order.reason = actor->failure.cause;
  context_.processes.End(process, order, now, out);
  return true;
}

void Actors::OnStartFailed(Process& process, const std::string& error, Effects* out) {
  Actor* actor = Of(process);
  if (actor == nullptr) return;
  wire::Failure failure;
  failure.kind = wire::FailureKind::kNotStarted;
  failure.cause = ActorText(actor->start) + " could not be started: " + error;
  PostEnded(*actor, std::move(failure), out);
  Forget(process.actor, out);
}

void Actors::OnEnding(Process& process, Effects* out) {
  if (!process.exited || !process.drained) return;
  OnLent(process, wire::CpuLent(), out);
  Actor* actor = Of(process);
  if (actor == nullptr) return;
  // exit_actor() and sys.exit(0): no reason to start it again. os._exit(0) is one, whatever its
  // code says.
  if (!process.ordered && actor->leaves && process.exit.LeftWell()) actor->graceful = true;
  wire::Failure failure = std::move(actor->failure);
  if (process.ordered && failure.cause.empty()) {
    const bool told = !actor->end_reason.empty();
    failure.kind = told ? actor->end_kind : process.end_kind;
    failure.cause = told ? actor->end_reason : process.end.reason;
  }
  DescribeExit(context_.facts, ActorText(actor->start), process.pid, process.exit, &failure);
  PostEnded(*actor, std::move(failure), out);
  Forget(process.actor, out);
}

void Actors::OnLent(const Process& process, const wire::CpuLent& lent, Effects* out) {
  const auto before = lenders_.find(process.id);
  const ActorId lender = before != lenders_.end() ? before->second
                         : lent.lender.IsNil()    ? process.actor
                                                  : lent.lender;
  if (before != lenders_.end() && !lent.waits) lenders_.erase(before);
  const auto found = actors_.find(lender);
  if (found == actors_.end()) return;  // the actor is gone, with all it held
  if (lent.waits) {
    lenders_[process.id] = lender;
    found->second.unused[process.id] = lent.amount;
  } else {
    found->second.unused.erase(process.id);
  }
  LendNow(found->second, out);
}

// Nothing while its own process goes on: that uses what others do not.
void Actors::LendNow(Actor& actor, Effects* out) {
  std::uint64_t sum = 0;
  for (const auto& [process, amount] : actor.unused) sum += amount;
  if (actor.unused.count(actor.process) == 0) sum = 0;
  if (std::exchange(actor.lends, sum) == sum) return;
  if (actor.start.lends) context_.leases.Lend({actor.start.group, actor.start.attempt}, sum);
  SayLent(actor, out);
}

void Actors::SayLent(const Actor& actor, Effects* out) const {
  wire::ActorLends lends;
  lends.actor = actor.start.actor;
  lends.incarnation = actor.start.incarnation;
  lends.amount = actor.lends;
  lends.free = AmountsToWire(context_.leases.Free());
  lends.free_version = context_.leases.version();
  wire::Message message;
  message.body = std::move(lends);
  context_.outbox.SendNow(std::move(message), out);
}

void Actors::OnRegistered(Effects* out) const {
  for (const auto& [id, actor] : actors_) {
    if (actor.lends > 0) SayLent(actor, out);
  }
}

void Actors::PostStarted(const Actor& actor, Effects* out) {
  const Process* process = context_.processes.Find(actor.process);
  wire::ActorStarted started;
  started.actor = actor.start.actor;
  started.incarnation = actor.start.incarnation;
  started.awaits = !actor.ready;
  wire::ActorAddress& address = started.address;
  address.actor = actor.start.actor;
  address.node = context_.node;
  address.boot_id = context_.facts.boot_id;
  address.host = context_.facts.listen_host;
  address.port = context_.facts.listen_port;
  address.incarnation = actor.start.incarnation;
  address.process = actor.process;
  address.repr_name = actor.repr_name;
  if (process != nullptr) {
    address.unix_path = process->socket_path;
    address.pid = process->pid;
  }
  wire::Message message;
  message.body = std::move(started);
  context_.outbox.Post(std::move(message), out);
}

void Actors::PostEnded(const Actor& actor, wire::Failure failure, Effects* out) {
  failure.node = context_.node;
  failure.node_name = context_.facts.name;
  failure.host = context_.facts.host;
  wire::ActorEnded ended;
  ended.actor = actor.start.actor;
  ended.incarnation = actor.start.incarnation;
  ended.failure = std::move(failure);
  ended.graceful = actor.graceful;
  wire::Message message;
  message.body = std::move(ended);
  message.attachment = actor.attachment;
  context_.outbox.Post(std::move(message), out);
}

void Actors::Forget(const ActorId& id, Effects* out) {
  const ActorId copy = id;  // may live in what is erased
  const auto found = actors_.find(copy);
  if (found == actors_.end()) return;
  if (found->second.ticket != 0) out->push_back(ForgetBlob{found->second.ticket});
  actors_.erase(found);
}

Actors::Actor* Actors::Of(const Process& process) {
  const auto found = actors_.find(process.actor);
  return found == actors_.end() || found->second.process != process.id ? nullptr : &found->second;
}

void Actors::Fence(Instant now, Effects* out) {
  for (auto& [id, actor] : actors_) {
    if (!actor.start.recreatable) continue;
    if (Process* process = context_.processes.Find(actor.process)) {
      if (process->ending == Process::Ending::kNo) {
        actor.end_kind = wire::FailureKind::kFenced;
        actor.end_reason = "its node had no word from the head for too long";
        context_.processes.Kill(*process, now, out);
      }
    }
  }
}

void Actors::Renew(Instant renewed, Effects* out) {
  if (renewed - renewed_ < context_.limits.fence_after / kLeasesPerFence) return;
  renewed_ = renewed;
  for (const auto& [id, actor] : actors_) SendLease(actor, out);
}

void Actors::SendLease(const Actor& actor, Effects* out) const {
  if (!actor.start.recreatable || context_.processes.Find(actor.process) == nullptr) return;
  const Duration fence = context_.limits.fence_after;
  wire::ActorLease lease;
  lease.until_ns = static_cast<std::uint64_t>(
      (renewed_ + fence + fence / kLeasesPerFence).time_since_epoch().count());
  wire::Message message;
  message.body = lease;
  out->push_back(ToProcess{actor.process, std::move(message)});
}

bool Actors::AnyRecreatable() const {
  return std::any_of(actors_.begin(), actors_.end(),
                     [](const auto& each) { return each.second.start.recreatable; });
}

std::vector<wire::HeldActor> Actors::Held() const {
  std::vector<wire::HeldActor> held;
  for (const auto& [id, actor] : actors_) held.push_back({id, actor.start.incarnation});
  return held;
}

}  // namespace troupe::worker
