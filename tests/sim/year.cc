#include "tests/sim/year.h"

#include <memory>
#include <utility>
#include <vector>

#include "head/core/machine/event_history.h"
#include "head/core/machine/recent_writes.h"
#include "head/core/machine/snapshot.h"
#include "head/core/nodes/owners.h"
#include "head/core/nodes/roster.h"
#include "tests/sim/client_host.h"
#include "tests/sim/worker_host.h"

namespace troupe::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDay = 24h;
constexpr Duration kBusy = 5min;  // busy time of each day
constexpr std::size_t kWorkers = 2;
constexpr int kLaunchesADay = 4;
constexpr int kActorsADay = 2;
constexpr int kNodesADay = 4;
constexpr std::size_t kEndedMax = 10;
constexpr std::size_t kDeadActorsMax = 100;
constexpr Duration kNeverBack = 100 * 365 * 24h;

wire::Resource Cpus(std::uint64_t ten_thousandths) {
  wire::Resource cpu;
  cpu.name = "CPU";
  cpu.ten_thousandths = ten_thousandths;
  return cpu;
}

class Year {
 public:
  explicit Year(std::uint64_t seed) : loop_(seed), checker_(loop_), head_(loop_, plan_, checker_) {
    plan_.commit_most = Ms(2);
    plan_.latency_most = Ms(5);
    plan_.constructor_most = Ms(20);
    plan_.snapshot_permille = 2;
    head_.checks_states = false;  // each step is checked by the seeds
    head_.tune = [](head::CoreOptions& options) {
      options.archives = true;
      options.ended_max = kEndedMax;
      options.dead_actors_max = kDeadActorsMax;
      options.heartbeat = 6h;
      options.measures_every = 6h;
      options.suspect_after = 13h;
      options.dead_after = 20h;
    };
    head_.worker_lives = [this](const NodeId& id) {
      const WorkerHost* worker = WorkerOf(id);
      return worker != nullptr && !worker->Refuses();
    };
    head_.worker_state = [this](const NodeId& id) {
      const WorkerHost* worker = WorkerOf(id);
      return worker != nullptr ? worker->State() : '\0';
    };
  }

  YearResult Go(int days) {
    head_.Start();
    for (std::size_t i = 0; i < kWorkers; ++i) NewWorker().Start();
    NewClient();
    for (int day = 0; day < days && checker_.failure().empty(); ++day) ADay(day);
    if (checker_.failure().empty()) CheckHead();
    if (checker_.failure().empty()) CheckWorkers();
    result_.failure = checker_.failure();
    result_.events = loop_.events();
    result_.archived = head_.archive().size();
    return result_;
  }

 private:
  WorkerHost& NewWorker() {
    workers_.push_back(
        std::make_unique<WorkerHost>(loop_, plan_, checker_, head_, workers_.size(), false));
    WorkerHost& worker = *workers_.back();
    worker.disturb_all = [this](const LaunchId& launch, std::uint64_t epoch) {
      for (std::size_t i = 0; i < kWorkers; ++i) workers_[i]->Disturb(launch, epoch);
    };
    worker.peer_of = [this](const NodeId& id) { return WorkerOf(id); };
    return worker;
  }
  const WorkerHost* WorkerOf(const NodeId& id) const {
    return id.lo >= 1 && id.lo <= workers_.size() ? workers_[id.lo - 1].get() : nullptr;
  }
  void NewClient() {
    clients_.push_back(
        std::make_unique<ClientHost>(loop_, plan_, checker_, head_, clients_.size()));
    clients_.back()->bring = [this](const ProcessId& process) {
      for (std::size_t i = 0; i < kWorkers; ++i) workers_[i]->Bring(process);
    };
    clients_.back()->Start();
  }
  /// Within the first minute of the day's work.
  void Soon(std::string_view name, std::function<void()> run) {
    loop_.In(Ms(1000 + loop_.random().Below(60'000)), name, std::move(run));
  }
  void Step(Duration time) {
    const Instant until = loop_.Now() + time;
    while (checker_.failure().empty() && loop_.Step(until)) {
    }
  }

  void ADay(int day) {
    ClientHost* client = clients_.back().get();
    for (int i = 0; i < kLaunchesADay; ++i) Soon("submit", [this, client] { Submit(*client); });
    for (int i = 0; i < kActorsADay; ++i)
      Soon("make actor", [this, client] { MakeActor(*client); });
    Soon("write", [client] { client->Write(); });
    for (int i = 0; i < kNodesADay; ++i) ANodeComesAndGoes();
    if (day % 30 == 10) Soon("head dies", [this] { KillHead(); });
    if (day % 30 == 20) Soon("worker dies", [this] { KillWorker(*workers_[1]); });
    Step(kBusy);
    client->KillActors();
    Step(kBusy);
    if (day % 10 == 9) {
      client->End();
      NewClient();
    }
    Step(kDay - 2 * kBusy);
  }
  void Submit(ClientHost& client) {
    wire::LaunchSpec spec;
    spec.function_name = "train";
    spec.mode = loop_.random().Chance(500) ? wire::LaunchMode::kDriver
                                           : wire::LaunchMode::kDistributed;
    spec.ranks = static_cast<std::uint32_t>(1 + loop_.random().Below(2));
    spec.per_rank = {Cpus(10'000)};
    spec.attempts_max = 2;
    spec.detached = loop_.random().Chance(300);
    ++result_.launches;
    client.Submit(std::move(spec));
  }
  void MakeActor(ClientHost& client) {
    wire::ActorSpec spec;
    spec.actor = ActorId::Random(loop_.random());
    spec.class_name = "Slow";
    spec.name = "actor-" + std::to_string(++result_.actors);
    spec.max_restarts = -1;
    spec.run_resources = {Cpus(5'000)};
    client.MakeActor(std::move(spec));
  }
  void ANodeComesAndGoes() {
    WorkerHost* worker = &NewWorker();
    ++result_.nodes;
    const bool leaves = loop_.random().Chance(500);
    Soon("joins", [worker] { worker->Start(); });
    loop_.In(2min, "goes", [worker, leaves] {
      if (leaves) {
        worker->Leave(kNeverBack);
      } else {
        worker->Crash();
      }
    });
  }
  void KillHead() {
    head_.Crash();
    ++result_.heads;
    loop_.In(2s, "head is back", [this] { head_.Start(); });
  }
  void KillWorker(WorkerHost& worker) {
    worker.Crash();
    loop_.In(2s, "worker is back", [&worker] { worker.Start(); });
  }

  void AtMost(std::size_t size, std::size_t limit, const std::string& what) {
    checker_.Expect(size <= limit, what + ": " + std::to_string(size) + " are kept, more than " +
                                       std::to_string(limit));
  }
  void CheckHead() {
    const head::State& state = head_.core().state();
    AtMost(state.launches.size(), kEndedMax + kLaunchesADay, "launches");
    AtMost(state.ended.size(), state.launches.size(), "launches that are over");
    AtMost(state.requests.size(), state.launches.size(), "submissions");
    AtMost(state.ended.moved.size(), 0, "submissions of launches in the archive");
    AtMost(state.tombstones.size(), head::kTombstonesMax, "outcomes");
    AtMost(state.actors.size(), kDeadActorsMax + kActorsADay, "actors");
    AtMost(state.dead_actors.size(), kDeadActorsMax, "dead actors");
    AtMost(state.names.size() + state.pending_actors.size() + state.leased_actors.size(),
           3 * kActorsADay, "names and places of actors");
    AtMost(state.former_names.size(), state.actors.size(), "former names");
    AtMost(state.nodes.size(), head::kDeadNodesMax + kWorkers, "nodes");
    AtMost(state.node_names.size(), kWorkers, "names of nodes");
    AtMost(state.node_keys.size(), head::kNodeKeysMax, "keys of nodes");
    AtMost(state.groups.size(), 1000, "groups");
    AtMost(state.waiting_groups.size() + state.waiting_by_user.size() +
               state.waiting_inside.size() + state.waiting_runs.size() +
               state.waiting_after.size() + state.job_tokens.size() + state.queue.open.size(),
           0, "what waits");
    AtMost(state.values.size(), clients_.size(), "values");
    AtMost(state.tokens.size(), 0, "tokens");
    AtMost(state.users.by_name.size(), 1, "users");
    AtMost(state.sessions.size() + state.owners.size(), 2 * (kWorkers + 2), "sessions, owners");
    AtMost(state.rank_processes.size() + state.output_routes.size() + state.task_owners.size() +
               state.task_listings.size() + state.waits.size() + state.room_wanted.by.size(),
           1, "what belongs to what runs");
    AtMost(state.history.notes().size(), head::EventHistory::kNotesMax, "notes");
    AtMost(state.timers.size(), 4 * kWorkers + 20, "timers");
    AtMost(state.cluster.numbered(), 500, "kinds of nodes");
    AtMost(head::SnapshotOf(state).size(),
           100 + 2 * state.launches.size() + state.actors.size() + state.nodes.size() +
               state.node_keys.size() + state.groups.size() + state.values.size(),
           "rows of a snapshot");
    std::size_t holdings = 0, watchers = 0;
    for (const auto& [id, node] : state.nodes) holdings += node.holdings.size();
    for (const auto& [id, launch] : state.launches) watchers += launch.watchers.size();
    for (const auto& [id, actor] : state.actors) watchers += actor.watchers.size();
    AtMost(holdings, 0, "what nodes hold");
    AtMost(watchers, 2 * (state.launches.size() + state.actors.size()), "watchers");
    // Launches that left memory by number are in the archive, for the retention's 7 days.
    checker_.Expect(head_.archive().size() <= 8 * kLaunchesADay, "the archive keeps all");
  }
  void CheckWorkers() {
    for (std::size_t i = 0; i < kWorkers; ++i) {
      const worker::WorkerCore* core = workers_[i]->core();
      checker_.Expect(core != nullptr && core->registered(), "a worker is lost");
      if (core == nullptr) continue;
      AtMost(core->held(), 8, "what a worker has under way");
      AtMost(core->leases().Holdings().size(), 0, "what a worker holds");
    }
  }

  SimLoop loop_;
  FaultPlan plan_;
  Checker checker_;
  HeadHost head_;
  std::vector<std::unique_ptr<WorkerHost>> workers_;
  std::vector<std::unique_ptr<ClientHost>> clients_;
  YearResult result_;
};

}  // namespace

YearResult RunYear(std::uint64_t seed, int days) { return std::make_unique<Year>(seed)->Go(days); }

}  // namespace troupe::sim
