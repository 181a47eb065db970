#include "worker/core/launches.h"

#include <algorithm>
#include <utility>

#include "runtime/base/rank_actor.h"
#include "worker/core/environment.h"

namespace troupe::worker {
namespace {

constexpr int kFencedExitCode = 76;

std::string RankName(std::uint32_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

std::string Launches::Problem(const wire::StartRanks& start) const {
  const NodeFacts& facts = context_.facts;
  const std::string& wanted = start.environment.python_version;
  if (!wanted.empty() && !facts.python_version.empty() && wanted != facts.python_version) {
    return "the caller runs Python " + wanted + ", node " + facts.name + " runs Python " +
           facts.python_version + ": a pickled function does not travel between them";
  }
  const ReservationKey lease{start.group, start.attempt};
  if (!context_.leases.Usable(lease)) {
    return "node " + facts.name + " does not hold the reservation of this launch";
  }
  return "";
}

// W4
bool Launches::ComesAnew(const wire::StartRanks& start) const {
  const auto ended = ended_.find(start.launch);
  return ended != ended_.end() && ended->second == start.epoch && start.epoch > 0 &&
         ending_.count(start.launch) == 0 && !start.ranks.empty() &&
         std::all_of(start.ranks.begin(), start.ranks.end(),
                     [](const wire::RankPlace& place) { return place.life > 0; });
}

void Launches::Start(const wire::StartRanks& start, const std::string& payload, Instant now,
                     Effects* out) {
  const RunKey key{start.launch, start.epoch, start.generation};
  if (const auto known = runs_.find(key); known != runs_.end()) {
    if (known->second.ready && !known->second.roster) PostReady(known->second, out);
    return;
  }
  if (ComesAnew(start)) ended_[start.launch] = start.epoch - 1;
  if (Ended(start.launch, start.epoch)) {
    CheckEnded(now, out);
    if (ending_.count(start.launch) == 0) {
      wire::Message message;
      message.body = wire::EpochEnded{start.launch, start.epoch};
      context_.outbox.Post(std::move(message), out);
    }
    return;
  }
  for (const auto& [other, run] : runs_) {
    if (std::get<0>(other) == start.launch && key < other) return;  // W4: a newer one is here
  }
  wire::ProcessEnd fenced;
  fenced.exit_code = kFencedExitCode;
  fenced.outcome = wire::Outcome::kCancelled;
  fenced.reason = "epoch " + std::to_string(start.epoch) + " of this launch has begun";
  if (start.epoch > 0) EndUpTo(start.launch, start.epoch - 1, fenced, now, out);
  for (auto& [other, run] : runs_) {
    if (std::get<0>(other) != start.launch || std::get<1>(other) != start.epoch) continue;
    for (Rank& rank : run.ranks) {
      if (Process* process = context_.processes.Find(rank.process)) {
        context_.processes.End(*process, fenced, now, out);
      }
    }
    if (Process* store = context_.processes.Find(run.store)) {
      context_.processes.End(*store, fenced, now, out);
    }
  }

  Run& run = runs_[key];
  run.start = start;
  for (const wire::RankPlace& place : start.ranks) {
    Rank rank;
    rank.place = place;
    rank.actor = RankActorId(start.launch, start.epoch, place.rank);
    rank.life = place.life;
    rank.lease = ReservationKey{start.group, start.attempt};
    rank.gpu_ids = start.gpu_ids;
    run.group_epoch = std::max(run.group_epoch, place.life);
    run.ranks.push_back(std::move(rank));
  }
  run.interface = context_.facts.choose_interface(start.peer_hosts);
  if (const std::string problem = Problem(start); !problem.empty()) {
    FailAll(run, problem, now, out);
    return;
  }
  if (start.payload.sha256.empty()) {
    Fork(run, payload, "", now, out);
    return;
  }
  run.ticket = context_.next_ticket++;
  run.fetching = true;
  out->push_back(FetchBlob{run.ticket, start.payload});
}

bool Launches::OnBlob(std::uint64_t ticket, const StatusOr<std::string>& path, Instant now,
                      Effects* out) {
  for (auto& [key, run] : runs_) {
    if (run.ticket != ticket || !run.fetching) continue;
    run.fetching = false;
    if (path.ok()) {
      Fork(run, "", *path, now, out);
    } else {
      FailAll(run,
              "the function and its arguments could not be fetched: " + MessageOf(path.status()),
              now, out);
    }
    return true;
  }
  return false;
}

wire::Message Launches::BeginOf(const Run& run, const std::string& payload,
                                const std::string& payload_path) const {
  const wire::StartRanks& start = run.start;
  const NodeFacts& facts = context_.facts;
  wire::RankBegin begin;
  begin.launch = start.launch;
  begin.epoch = start.epoch;
  begin.generation = start.generation;
  begin.world_size = start.world_size;
  begin.local_world_size = static_cast<std::uint32_t>(start.ranks.size());
  begin.node_rank = start.node_rank;
  begin.node_count = start.node_count;
  begin.mode = start.mode;
  begin.group = start.group;
  begin.cluster_id = context_.cluster;
  begin.node = context_.node;
  begin.name = start.name;
  begin.node_name = facts.name;
  begin.boot_id = facts.boot_id;
  begin.per_rank = start.per_rank;
  begin.exit_grace_ms = start.exit_grace_ms;
  begin.hang_ms = start.hang_ms;
  begin.payload_path = payload_path;
  wire::Message message;
  message.body = std::move(begin);
  message.attachment = payload;
  return message;
}

void Launches::Fork(Run& run, const std::string& payload, const std::string& payload_path,
                    Instant now, Effects* out) {
  if (run.start.hosts_store) ForkStore(run, out);
  run.payload_path = payload_path;
  const wire::Message begin = BeginOf(run, payload, payload_path);
  for (Rank& rank : run.ranks) {
    if (ForkOne(run, rank, begin, out)) continue;
    FailAll(run, "the reservation of this launch was released while it started", now, out);
    return;
  }
}

std::vector<wire::EnvVar> Launches::EnvironmentOf(const Run& run, const Rank& rank,
                                                  ProcessId process) const {
  if (rank.lease == ReservationKey{run.start.group, run.start.attempt})
    return RankEnvironment(context_.facts, run.start, rank.place, run.interface, process);
  wire::StartRanks apart = run.start;  // a reservation for it alone, with devices of its own
  apart.gpu_ids = rank.gpu_ids;
  apart.ranks.resize(std::max<std::size_t>(apart.ranks.size(), rank.place.local_rank + 1));
  return RankEnvironment(context_.facts, apart, rank.place, run.interface, process);
}

bool Launches::ForkOne(Run& run, Rank& rank, const wire::Message& begin, Effects* out) {
  const wire::StartRanks& start = run.start;
  const ProcessId id = ProcessId::Random(context_.random);
  if (!context_.leases.Attach(rank.lease, id)) return false;
  rank.process = id;
  Process process;
  process.id = id;
  process.kind = wire::ProcessKind::kRank;
  process.launch = start.launch;
  process.epoch = start.epoch;
  process.generation = start.generation;
  process.rank = static_cast<std::int32_t>(rank.place.rank);
  process.actor = rank.actor;
  if (start.mode == wire::LaunchMode::kDriver) process.socket_path = context_.SocketPath(id);

  StartProcess effect;
  effect.request.process = id;
  effect.request.kind = wire::ProcessKind::kRank;
  effect.request.env = EnvironmentOf(run, rank, id);
  effect.request.working_directory = start.environment.working_directory;
  effect.request.import_path = start.environment.import_path;
  effect.request.title =
      "troupe: " + RankName(rank.place.rank) + " of " + start.name + " " + start.launch.Short();
  effect.request.threads = ThreadsFor(start.per_rank);
  effect.memory_bytes = AmountOf(AmountsFromWire(start.per_rank), kMemory) / kWhole;
  effect.fresh_interpreter = start.environment.fresh_interpreter;
  effect.zygote = ZygoteKeyOf(context_.facts.base_environment, start.environment);
  effect.begin = begin;
  effect.has_begin = true;
  wire::RankBegin& body = wire::Get<wire::RankBegin>(effect.begin.body);
  body.rank = rank.place.rank;
  body.local_rank = rank.place.local_rank;
  body.socket_path = process.socket_path;
  body.actor = rank.actor;
  body.life = rank.life;
  body.result_path = context_.facts.result_dir + "/" + id.Hex();
  effect.socket_path = process.socket_path;
  effect.log = PlaceOf(start, rank.place.rank);
  context_.processes.Add(std::move(process));
  out->push_back(std::move(effect));
  return true;
}

LogPlace Launches::PlaceOf(const wire::StartRanks& start, std::uint32_t rank) {
  return LogPlace{start.launch.Hex() + "/epoch-" + std::to_string(start.epoch),
                  "rank-" + std::to_string(rank)};
}

void Launches::ForkStore(Run& run, Effects* out) {
  const wire::StartRanks& start = run.start;
  const ProcessId id = ProcessId::Random(context_.random);
  if (!context_.leases.Attach(ReservationKey{start.group, start.attempt}, id)) return;
  run.store = id;
  Process process;
  process.id = id;
  process.kind = wire::ProcessKind::kStore;
  process.launch = start.launch;
  process.epoch = start.epoch;
  process.generation = start.generation;
  context_.processes.Add(std::move(process));
  StartProcess effect;
  effect.request.process = id;
  effect.request.kind = wire::ProcessKind::kStore;
  effect.request.env = StoreEnvironment(context_.facts, start, run.interface, id);
  effect.request.title = "troupe: store of " + start.name + " " + start.launch.Short();
  effect.request.threads = 1;
  effect.log = LogPlace{start.launch.Hex() + "/epoch-" + std::to_string(start.epoch), "store"};
  out->push_back(std::move(effect));
}

void Launches::FailAll(Run& run, const std::string& cause, Instant now, Effects* out) {
  for (Rank& rank : run.ranks) {
    if (rank.done) continue;
    if (Process* process = context_.processes.Find(rank.process)) {
      context_.processes.Kill(*process, now, out);
    }
    wire::RankDone done;
    done.outcome = wire::Outcome::kFailed;
    done.failure.kind = wire::FailureKind::kNotStarted;
    done.failure.cause = cause;
    done.failure.node_name = context_.facts.name;
    done.failure.host = context_.facts.host;
    Report(run, rank, std::move(done), "", now, out);
  }
}

void Launches::CheckReady(Run& run, Effects* out) {
  if (run.ready || (run.start.hosts_store && !run.store_port)) return;
  for (const Rank& rank : run.ranks) {
    if (!rank.prepared || rank.done) return;
  }
  run.ready = true;
  PostReady(run, out);
}

std::string Launches::StartedFrom(const Run& run) const {
  std::set<std::string> all;
  for (const Rank& rank : run.ranks) {
    const Process* process = context_.processes.Find(rank.process);
    if (process != nullptr && !process->started_from.empty()) all.insert(process->started_from);
  }
  std::string text;
  for (const std::string& each : all) text += (text.empty() ? "" : "; ") + each;
  return text;
}

void Launches::PostReady(const Run& run, Effects* out) {
  wire::RanksReady ready;
  ready.launch = run.start.launch;
  ready.epoch = run.start.epoch;
  ready.generation = run.start.generation;
  if (run.start.hosts_store) {  // and so there is a port: see CheckReady
    ready.store_host = run.interface.address;
    ready.store_port = run.store_port.value_or(0);
    ready.group_secret = run.group_secret;
  }
  ready.started_from = StartedFrom(run);
  if (run.start.mode == wire::LaunchMode::kDriver) {
    for (const Rank& rank : run.ranks) {
      const Process* process = context_.processes.Find(rank.process);
      wire::ActorAddress address;
      address.actor = rank.actor;
      address.node = context_.node;
      address.boot_id = context_.facts.boot_id;
      address.process = rank.process;
      if (process != nullptr) {
        address.unix_path = process->socket_path;
        address.pid = process->pid;
      }
      address.host = context_.facts.listen_host;
      address.port = context_.facts.listen_port;
      address.incarnation = run.start.epoch;
      ready.rank_actors.push_back(std::move(address));
    }
  }
  wire::Message message;
  message.body = std::move(ready);
  context_.outbox.Post(std::move(message), out);
}

void Launches::Publish(const wire::PublishRoster& roster, Instant now, Effects* out) {
  const auto found = runs_.find({roster.launch, roster.epoch, roster.generation});
  if (found == runs_.end() || found->second.roster || !found->second.ready) return;
  Run& run = found->second;
  run.roster = true;
  run.go.master_host = roster.store_host;
  run.go.master_port = roster.store_port;
  run.go.group_secret = roster.group_secret;
  run.go.rank_actors = roster.rank_actors;
  run.go.nodes = roster.nodes;
  wire::EnvVar host;
  host.name = "MASTER_ADDR";
  host.value = roster.store_host;
  run.go.env.push_back(std::move(host));
  if (roster.store_port != 0) {
    wire::EnvVar port;
    port.name = "MASTER_PORT";
    port.value = std::to_string(roster.store_port);
    run.go.env.push_back(std::move(port));
  }
  for (const Rank& rank : run.ranks) {
    if (!rank.done) LetRun(run, rank, out);
  }
}

void Launches::LetRun(const Run& run, const Rank& rank, Effects* out) const {
  wire::RankRun go = run.go;
  if (rank.place.rank != 0) go.rank_actors.clear();
  wire::Message message;
  message.body = std::move(go);
  out->push_back(ToProcess{rank.process, std::move(message)});
}

std::vector<wire::HeldRank> Launches::Held() const {
  std::vector<wire::HeldRank> held;
  for (const auto& [key, run] : runs_) {
    for (const Rank& rank : run.ranks) {
      // A rank that is done waits for the epoch's end: the head must learn that it still does.
      const Process* process = context_.processes.Find(rank.process);
      if (rank.done && (process == nullptr || process->exited)) continue;
      wire::HeldRank each;
      each.launch = run.start.launch;
      each.epoch = run.start.epoch;
      each.generation = run.start.generation;
      each.rank = rank.place.rank;
      held.push_back(each);
    }
  }
  return held;
}

}  // namespace troupe::worker
