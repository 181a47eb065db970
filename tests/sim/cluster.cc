#include "tests/sim/cluster.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "head/core/machine/apply.h"
#include "head/core/machine/durable_text.h"
#include "tests/sim/client_host.h"
#include "tests/sim/people/colleagues.h"
#include "tests/sim/worker_host.h"

namespace troupe::sim {
namespace {

// Most actors of clients, which keep their half CPU until the end: with these on any node its two
// GPUs still find two of its four CPUs, so that no launch waits for resources that nobody gives
// back.
constexpr std::size_t kHoldersMax = 3;  // and one that has the name

// Returns an actor that is restarted again and again; `slow`: how many of 1,000 are of the class
// Slow.
wire::ActorSpec AnActor(Prng& random, std::uint64_t slow) {
  wire::ActorSpec spec;
  spec.actor = ActorId::Random(random);
  spec.class_name = random.Chance(slow) ? "Slow" : "Awaits";
  spec.max_restarts = -1;
  return spec;
}

void HoldHalfACpu(wire::ActorSpec& spec) {
  wire::Resource cpu;
  cpu.name = "CPU";
  cpu.ten_thousandths = 5000;
  spec.run_resources = {cpu};
}

class Run {
 public:
  Run(std::uint64_t seed, bool verbose) : seed_(seed), loop_(seed), checker_(loop_) {
    checker_.set_verbose(verbose);
    Prng& random = loop_.random();
    work_.workers = 1 + random.Below(4);
    work_.clients = 1 + random.Below(3);
    work_.launches = 1 + random.Below(8);
    work_.writes = random.Below(30);
    work_.chaos = std::chrono::seconds(20);
    plan_ = DrawPlan(random, work_);
    Prng others(seed ^ 0x70726965);  // beside the draws of older seeds
    work_.priorities = others.Chance(500) ? 3 : 1;
    plan_.preempts = others.Chance(700);
    checker_.set_preempts(plan_.preempts);
    const bool beside_head = others.Chance(500);
    if (others.Chance(500)) {  // the other half is what it was before there were such actors
      work_.actors = 1 + others.Below(3);
      plan_.constructor_most = Ms(others.Chance(500) ? 20 : 3000);
      plan_.actor_crash_permille = static_cast<unsigned>(others.Below(900));
    }
    LoseANode();
    head_ = std::make_unique<HeadHost>(loop_, plan_, checker_);
    for (std::size_t i = 0; i < work_.workers; ++i) {
      workers_.push_back(
          std::make_unique<WorkerHost>(loop_, plan_, checker_, *head_, i, i == 0 && beside_head));
    }
    for (std::size_t i = 0; i < work_.clients; ++i) {
      clients_.push_back(std::make_unique<ClientHost>(loop_, plan_, checker_, *head_, i));
    }
    for (auto& client : clients_) {
      client->bring = [this](const ProcessId& process) {
        for (auto& worker : workers_) worker->Bring(process);
      };
    }
    for (auto& worker : workers_) {
      worker->disturb_all = [this](const LaunchId& launch, std::uint64_t epoch) {
        for (auto& other : workers_) other->Disturb(launch, epoch);
      };
      worker->peer_of = [this](const NodeId& id) { return WorkerOf(id); };
    }
    if (!work_.outlives_node) {  // nobody may wait for it for long
      colleagues_.emplace(seed, loop_, plan_, checker_, *head_, work_.workers);
    }
    if (Prng(seed ^ 0x61726368).Chance(300)) {  // launches leave memory soon after their end
      head_->tune = [](head::CoreOptions& options) {
        options.archives = true;
        options.ended_max = 1;
      };
    }
    head_->worker_lives = [this](const NodeId& id) {
      const WorkerHost* worker = WorkerOf(id);
      return worker != nullptr && !worker->Refuses();
    };
    head_->worker_state = [this](const NodeId& id) {
      const WorkerHost* worker = WorkerOf(id);
      return worker != nullptr ? worker->State() : '\0';
    };
  }

  RunResult Go() {
    const Instant begin = loop_.Now();
    if (colleagues_) colleagues_->Start(clients_);
    head_->Start();
    for (auto& worker : workers_) Join(*worker);
    for (auto& client : clients_) client->Start();
    PlanLaunches();
    PlanLongLaunch();
    PlanWrites();
    PlanActors();
    PlanNames();
    for (const Fault& fault : plan_.faults) {
      loop_.At(begin + fault.at, "fault", [this, fault] { Strike(fault); });
    }
    const Instant healed = begin + work_.chaos + Ms(9100);
    while (checker_.failure().empty() && loop_.Step(healed)) {
    }
    Heal();
    const Instant end = healed + std::chrono::seconds(120);
    const Instant soon = healed + std::chrono::seconds(40);
    while (checker_.failure().empty() && !Settled() && loop_.Step(soon)) {
    }
    CheckActors(false);
    while (checker_.failure().empty() && !Settled() && loop_.Step(end)) {
    }
    CheckActors(true);
    checker_.Expect(Settled(), "L1: a launch goes on for 120 s after the last fault");
    for (auto& client : clients_) client->KillActors();
    const Instant killed = loop_.Now() + std::chrono::seconds(60);
    while (checker_.failure().empty() && !Killed() && loop_.Step(killed)) {
    }
    checker_.Expect(Killed(), "L1: who kills an actor never hears of its end");
    const Instant quiet = loop_.Now() + std::chrono::seconds(10);
    while (checker_.failure().empty() && loop_.Step(quiet)) {
    }
    if (checker_.failure().empty()) CheckEnd();
    return Result();
  }

 private:
  const WorkerHost* WorkerOf(const NodeId& id) const {
    for (const auto& worker : workers_) {
      if (worker->id() == id) return worker.get();
    }
    return nullptr;
  }

  // Some are there from the start, others come while work waits.
  void Join(WorkerHost& worker) {
    if (plan_.join_most == Duration{} || &worker == workers_[0].get()) return worker.Start();
    const auto most = static_cast<std::uint64_t>(Millis(plan_.join_most)) + 1;
    loop_.In(Ms(loop_.random().Below(most)), "join", [&worker] { worker.Start(); });
  }

  void PlanWrites() {
    Prng& random = loop_.random();
    for (auto& client : clients_) {
      for (std::size_t i = 0; i < work_.writes; ++i) {
        ClientHost* writer = client.get();
        loop_.In(Ms(random.Below(20000)), "write", [writer] { writer->Write(); });
      }
    }
  }

  // In some runs a node is cut off until all that may run there has fenced itself, and what may be
  // made elsewhere has been, while a launch goes on without it.
  void LoseANode() {
    Prng losses(seed_ ^ 0x6c6f7373);  // beside the draws of older seeds
    if (work_.workers < 2 || !losses.Chance(60)) return;
    work_.outlives_node = true;
    Fault lost{FaultKind::kIsolate, Ms(5000 + losses.Below(10'000)), Ms(80'000), 0};
    lost.target = losses.Below(work_.workers);
    plan_.faults.push_back(lost);
    work_.chaos = std::chrono::seconds(100);
  }

  wire::LaunchSpec OneThatOutlivesANode() {
    Prng draws(seed_ ^ 0x6f75746c);
    wire::LaunchSpec spec;
    spec.function_name = kOutlivesNode;
    spec.mode = wire::LaunchMode::kDistributed;
    spec.ranks = static_cast<std::uint32_t>(work_.workers);
    wire::Resource cpu;
    cpu.name = "CPU";
    cpu.ten_thousandths = 10000;
    spec.per_rank = {cpu};
    spec.strategy = wire::Strategy::kSpread;
    spec.attempts_max = 2;
    spec.stop_grace_ms = 3000;  // with what a node adds to it, less than the quiet before CheckEnd
    spec.exit_grace_ms = 3000;
    spec.on_rank_death = draws.Chance(700) ? wire::RankDeath::kShrink : wire::RankDeath::kReplace;
    spec.ranks_min = 1;
    spec.reform_ms = 5000;
    return spec;
  }

  void PlanActors() {
    Prng random(seed_ ^ 0x6163746f72);
    std::size_t holders = 0;
    for (auto& client : clients_) {
      for (std::size_t i = 0; i < work_.actors; ++i) {
        wire::ActorSpec spec = AnActor(random, 500);
        if (random.Chance(300) && holders++ < kHoldersMax) HoldHalfACpu(spec);
        ClientHost* maker = client.get();
        loop_.In(Ms(random.Below(15000)), "make actor", [maker, spec] { maker->MakeActor(spec); });
      }
    }
  }

  // All callers take the same name, again and again.
  void PlanNames() {
    if (work_.actors == 0) return;
    Prng random(seed_ ^ 0x6e616d6573);
    for (auto& client : clients_) {
      for (std::uint64_t left = random.Below(6); left > 0; --left) {
        wire::ActorSpec spec = AnActor(random, 700);
        spec.name = "shared";
        if (random.Chance(300)) HoldHalfACpu(spec);
        ClientHost* taker = client.get();
        loop_.In(Ms(random.Below(20000)), "take name", [taker, spec] { taker->TakeName(spec); });
      }
    }
  }

  // L2: whoever calls an actor that is started again is answered; one that holds nothing starts
  // within 40 s of the last fault, for nothing of it can still run where it was.
  void CheckActors(bool all) {
    for (const auto& client : clients_) {
      const std::string waiting = client->WaitingFor(all);
      checker_.Expect(waiting.empty(),
                      "L2: calls wait for an actor that is to start again:" + waiting);
    }
  }

  bool Killed() const {
    // Actors of callers that are gone end when the head has waited for their return
    if (head_->up()) {
      for (const auto& [id, actor] : head_->core().state().actors) {
        if (actor.live()) return false;
      }
    }
    return std::all_of(clients_.begin(), clients_.end(),
                       [](const auto& client) { return client->killed(); });
  }

  void PlanLaunches() {
    Prng& random = loop_.random();
    Prng others(seed_ ^ 0x6f72646572);
    Prng deaths(seed_ ^ 0x646561746873);  // beside the draws of older seeds
    Prng hangs(seed_ ^ 0x68616e6773);     // and these beside those
    Prng over(seed_ ^ 0x6f766572);        // over how many nodes
    for (std::size_t i = 0; i < work_.launches; ++i) {
      wire::LaunchSpec spec;
      spec.function_name = "train";
      spec.mode = random.Chance(500) ? wire::LaunchMode::kDriver : wire::LaunchMode::kDistributed;
      spec.ranks = static_cast<std::uint32_t>(1 + random.Below(2 * work_.workers));
      wire::Resource cpu;
      cpu.name = "CPU";
      cpu.ten_thousandths = 10000;
      spec.per_rank = {cpu};
      if (random.Chance(300)) {
        wire::Resource gpu = cpu;
        gpu.name = "GPU";
        spec.per_rank.push_back(gpu);
      }
      spec.strategy = random.Chance(300) ? wire::Strategy::kSpread : wire::Strategy::kPack;
      spec.attempts_max = static_cast<std::uint32_t>(1 + random.Below(3));
      spec.stop_grace_ms = static_cast<std::uint32_t>(random.Below(2) * random.Below(3000));
      spec.exit_grace_ms = static_cast<std::uint32_t>(random.Below(3000));
      if (random.Chance(150)) spec.timeout_ms = 500 + random.Below(20000);
      spec.detached = random.Chance(200);
      spec.priority = static_cast<std::int32_t>(others.Below(work_.priorities));
      if (spec.mode == wire::LaunchMode::kDistributed && deaths.Chance(500)) {
        spec.function_name = kLivesOn;
        spec.on_rank_death =
            deaths.Chance(500) ? wire::RankDeath::kShrink : wire::RankDeath::kReplace;
        spec.ranks_min = static_cast<std::uint32_t>(deaths.Below(spec.ranks + 1));
        spec.reform_ms = 1000 + static_cast<std::uint32_t>(deaths.Below(4000));
      }
      if (spec.mode == wire::LaunchMode::kDistributed && hangs.Chance(500))
        spec.hang_ms = 1000 + static_cast<std::uint32_t>(hangs.Below(2000));
      if (over.Chance(300)) {
        const std::uint64_t least = (spec.ranks + 1) / 2;  // a node has room for two ranks
        const std::uint64_t most = std::min<std::uint64_t>(spec.ranks, work_.workers);
        spec.nodes = static_cast<std::uint32_t>(least + over.Below(most - least + 1));
      }
      ClientHost* client = clients_[random.Below(clients_.size())].get();
      loop_.In(Ms(random.Below(15000)), "submit", [client, spec] { client->Submit(spec); });
    }
  }

  void PlanLongLaunch() {
    if (!work_.outlives_node) return;
    ClientHost* client = clients_[0].get();
    const wire::LaunchSpec spec = OneThatOutlivesANode();
    loop_.In(Ms(1), "submit", [client, spec] { client->Submit(spec); });
  }

  void Strike(const Fault& fault) {
    checker_.Note("fault", std::to_string(static_cast<int>(fault.kind)) + " of " +
                               std::to_string(fault.target));
    const auto back = [this](Duration after, auto start) { loop_.In(after, "back", start); };
    WorkerHost* worker = workers_[fault.target % workers_.size()].get();
    switch (fault.kind) {
      case FaultKind::kHeadCrash:
        if (!head_->up()) return;
        head_->Crash();
        return back(fault.lasts, [this] {
          if (!head_->up()) head_->Start();
        });
      case FaultKind::kWorkerCrash:
        if (!worker->up()) return;
        worker->Crash();
        return back(fault.lasts, [worker] {
          if (!worker->up()) worker->Start();
        });
      case FaultKind::kWorkerStop:
        return worker->StopUntil(loop_.Now() + fault.lasts);
      case FaultKind::kReset:
        clients_[fault.target % clients_.size()]->ResetLink();
        return worker->ResetLink();
      case FaultKind::kPartition:
        return worker->HoldLink(loop_.Now() + fault.lasts, true, true);
      case FaultKind::kDeaf:
        return worker->HoldLink(loop_.Now() + fault.lasts, false, true);
      case FaultKind::kMute:
        return worker->HoldLink(loop_.Now() + fault.lasts, true, false);
      case FaultKind::kLeave:
        return worker->Leave(fault.lasts);
      case FaultKind::kIsolate:
        return worker->Isolate(loop_.Now() + fault.lasts);
      case FaultKind::kHeadCut:
        for (auto& each : workers_) each->CutFromHead(loop_.Now() + fault.lasts);
        return;
      case FaultKind::kClientEnd:
        return clients_[fault.target % clients_.size()]->End();
    }
  }

  void Heal() {
    for (auto& worker : workers_) worker->Heal();
    if (colleagues_) colleagues_->Heal();
    plan_.duplicate_permille = 0;
  }

  bool Settled() const {
    for (const auto& client : clients_) {
      if (!client->satisfied()) return false;
    }
    if (!head_->up()) return false;
    for (const auto& [id, launch] : head_->core().state().launches) {
      if (launch.open()) return false;
    }
    return true;
  }

  void CheckEnd() {
    for (const auto& worker : workers_) {
      if (worker->core() == nullptr) continue;
      for (const wire::Holding& held : worker->core()->leases().Holdings()) {
        checker_.Note("left over", worker->core()->facts().name + " " + held.group.Short() +
                                       " attempt " + std::to_string(held.attempt) +
                                       (held.draining ? " draining" : ""));
      }
    }
    checker_.Note("state", head::DurableText(head_->core().state()));
    checker_.CheckValues(head_->core().state());
    if (colleagues_) colleagues_->CheckEnd();
    for (const auto& client : clients_) {
      checker_.Expect(client->satisfied(),
                      "L1: a caller never learnt the outcome of" + client->Waiting());
    }
    for (const auto& [id, launch] : head_->core().state().launches) {
      checker_.Expect(!launch.open(), "L1: launch " + id.Short() + " never ended");
      checker_.Expect(checker_.all_markers().count(id) == 1,
                      "a launch has no marker in the journal");
    }
    for (const auto& worker : workers_) {
      if (worker->core() == nullptr) continue;
      checker_.Expect(worker->core()->leases().Holdings().empty(),
                      "P4: a node still holds something");
      checker_.Expect(worker->core()->processes().empty(), "C10: a node still runs a process");
    }
    for (const auto& [id, route] : head_->core().state().output_routes) {
      checker_.Expect(route.process.IsNil(), "the head keeps where a rank was read that has ended");
    }
    for (const auto& [id, node] : head_->core().state().nodes) {
      checker_.Expect(node.dead || node.holdings.empty(),
                      "P4: the head thinks a node still holds something");
    }
    head::State replayed;
    checker_.Expect(
        head_->disk().Replay([&](const head::Row& row) { head::Apply(replayed, row.event); }).ok(),
        "the journal cannot be read");
    checker_.Expect(head::DurableText(replayed) == head::DurableText(head_->core().state()),
                    "replay gives another state");
  }

  RunResult Result() {
    RunResult result;
    result.seed = seed_;
    result.trace = loop_.trace();
    result.events = loop_.events();
    result.markers = checker_.markers();
    result.preemptions = checker_.preemptions();
    result.lives = checker_.lives();
    result.successions = checker_.successions();
    result.cut_starts = checker_.cut_starts();
    result.reforms = checker_.reforms();
    result.outlived = checker_.outlived();
    result.replaced = checker_.replaced();
    result.moved = checker_.moved();
    result.hung = checker_.hung();
    result.followed = checker_.followed();
    for (const auto& [id, marker] : checker_.all_markers()) {
      result.succeeded += marker.outcome == wire::Outcome::kSucceeded ? 1 : 0;
    }
    result.plan = TextOf(plan_);
    result.failure = checker_.failure();
    return result;
  }

  const std::uint64_t seed_;
  SimLoop loop_;
  Checker checker_;
  Workload work_;
  FaultPlan plan_;
  std::unique_ptr<HeadHost> head_;
  std::vector<std::unique_ptr<WorkerHost>> workers_;
  std::vector<std::unique_ptr<ClientHost>> clients_;
  std::optional<Colleagues> colleagues_;
};

}  // namespace

RunResult RunSeed(std::uint64_t seed, bool verbose) {
  return std::make_unique<Run>(seed, verbose)->Go();
}

RunResult CheckDeterminism(std::uint64_t seed) {
  RunResult first = RunSeed(seed);
  const RunResult second = RunSeed(seed);
  if (first.failure.empty() && (first.trace != second.trace || first.events != second.events)) {
    first.failure = "two runs of one seed differ";
  }
  return first;
}

std::string ReportOf(const RunResult& result) {
  return "seed " + std::to_string(result.seed) + ": " + result.failure + "\n" + result.plan +
         "repeat it with: troupe_sim --seeds 1 --first " + std::to_string(result.seed) +
         " --trace\n";
}

}  // namespace troupe::sim
