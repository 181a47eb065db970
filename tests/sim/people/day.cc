#include "tests/sim/people/day.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/sim/people/colleagues.h"
#include "tests/sim/worker_host.h"

namespace troupe::sim {
namespace {

using placement::kUnit;
using wire::CapKind;

constexpr const char* kOwners[] = {"alice", "bob", "carol", "dave"};
constexpr Duration kDay = std::chrono::hours(24);
constexpr Duration kLongestRun = std::chrono::minutes(100);
constexpr Duration kPassedOver = std::chrono::hours(4);
constexpr std::size_t kOpenEach = 20;  // launches of an owner, more than have room
constexpr char kService[] = "service";
constexpr std::uint64_t kCpusOfNode = 4;  // worker_host.cc

enum class Kind : std::uint8_t { kEquals, kService, kGang };

Duration Minutes(std::uint64_t minutes) { return std::chrono::minutes(minutes); }

void SetPeriods(head::CoreOptions& options) {
  options.user = "root";
  options.heartbeat = std::chrono::seconds(150);
  options.measures_every = Duration::zero();
  options.suspect_after = std::chrono::seconds(350);
  options.dead_after = std::chrono::seconds(500);
  options.recreate_after = std::chrono::seconds(500);
  options.return_grace = std::chrono::seconds(200);
  options.client_grace = std::chrono::seconds(200);
  options.restart_grace = std::chrono::seconds(200);
  options.passed_over_max = kPassedOver;
}

wire::Resource Whole(const char* name, std::uint64_t count) {
  wire::Resource resource;
  resource.name = name;
  resource.ten_thousandths = count * kUnit;
  return resource;
}

class Day {
 public:
  Day(std::uint64_t seed, bool verbose) : seed_(seed), loop_(seed), checker_(loop_) {
    checker_.set_verbose(verbose);
    Prng& random = loop_.random();
    kind_ = static_cast<Kind>(seed % 3);
    const std::size_t owners = 3 + random.Below(2);
    DrawPlan(3 + random.Below(2));
    head_ = std::make_unique<HeadHost>(loop_, plan_, checker_);
    SetPeriods(head_->options);
    for (std::size_t i = 0; i < owners; ++i) {
      head_->options.tokens.push_back(TokenOf(kOwners[i], i + 1));
      runs_least_[kOwners[i]] = 10 + random.Below(50);  // minutes
    }
    for (std::size_t i = 0; i < workers_count_; ++i) {
      workers_.push_back(std::make_unique<WorkerHost>(loop_, plan_, checker_, *head_, i, false));
      workers_.back()->work_of = [this](const wire::RankBegin& rank) { return WorkOf(rank); };
      workers_.back()->peer_of = [this](const NodeId& id) { return WorkerOf(id); };
      workers_.back()->disturb_all = [](const LaunchId&, std::uint64_t) {};
    }
    head_->worker_lives = [this](const NodeId& id) { return !WorkerOf(id)->Refuses(); };
    head_->worker_state = [this](const NodeId& id) { return WorkerOf(id)->State(); };
    with_gpus_ = kind_ == Kind::kEquals && random.Chance(300);
  }

  DayResult Go() {
    Watch(*head_, people_);
    // A group passed over comes next, and has room when all running ones have ended; if all is
    // there.
    people_.set_granted_within(kPassedOver + kLongestRun + Minutes(10) + faults_last_);
    const Instant begin = loop_.Now();
    head_->Start();
    for (auto& worker : workers_) worker->Start();
    StartOwners();
    for (const Fault& fault : plan_.faults)
      loop_.At(begin + fault.at, "fault", [this, fault] { Strike(fault); });
    const Instant end = begin + kDay;
    while (checker_.failure().empty() && loop_.Step(end)) {
    }
    if (checker_.failure().empty()) CheckEnd();
    return Result();
  }

 private:
  void DrawPlan(std::size_t workers) {
    workers_count_ = workers;
    Prng& random = loop_.random();
    plan_.commit_most = Ms(20);
    plan_.latency_most = Ms(30);
    plan_.snapshot_permille = static_cast<unsigned>(random.Below(5));
    plan_.keep_after = std::chrono::hours(1);
    plan_.wait = std::chrono::hours(2);
    plan_.dial_most = std::chrono::seconds(10);
    plan_.ask_again = Minutes(5);
    plan_.cancels = false;
    const auto draw = [&](FaultKind kind, std::uint64_t most, std::uint64_t minutes) {
      for (std::uint64_t left = random.Below(most + 1); left > 0; --left) {
        Fault fault{kind, Minutes(random.Below(24 * 60)), Minutes(1 + random.Below(minutes)), 0};
        fault.target = random.Below(workers);
        faults_last_ += fault.lasts + Minutes(10);  // until a loss is known, and all are back
        plan_.faults.push_back(fault);
      }
    };
    draw(FaultKind::kHeadCrash, 4, 10);
    draw(FaultKind::kWorkerCrash, 3, 40);
    draw(FaultKind::kReset, 3, 1);
    draw(FaultKind::kWorkerStop, 1, 10);
  }

  Duration WorkOf(const wire::RankBegin& rank) {
    if (rank.name == kService) return 2 * kDay;
    const std::uint64_t least = runs_least_.at(rank.name);
    return loop_.Between(Minutes(least), std::min(kLongestRun, Minutes(2 * least)));
  }

  const WorkerHost* WorkerOf(const NodeId& id) const {
    for (const auto& worker : workers_) {
      if (worker->id() == id) return worker.get();
    }
    return nullptr;
  }

  void StartOwners() {
    administrator_ = std::make_unique<Administrator>(loop_, plan_, checker_, *head_);
    administrator_->Start();
    for (const wire::TokenWritten& token : head_->options.tokens) {
      const std::size_t index = clients_.size();
      clients_.push_back(std::make_unique<ClientHost>(loop_, plan_, checker_, *head_, index));
      ClientHost* client = clients_.back().get();
      client->token = token.id;
      const wire::LaunchSpec spec = SpecOf(token.user, index == 0);
      client->on_learnt = [client, spec] { client->Submit(spec); };
      client->Start();
      // Once all nodes are there: what none of them can hold is refused.
      loop_.In(Minutes(1), "begins", [client, spec] {
        for (std::size_t i = 0; i < kOpenEach; ++i) client->Submit(spec);
      });
      equals_.insert(token.user);
    }
    if (kind_ == Kind::kService) StartService();
    if (kind_ == Kind::kEquals && loop_.random().Chance(500)) Cap(kOwners[0]);
    if (kind_ != Kind::kEquals) equals_.clear();
  }

  // Less than their part of the cluster.
  void Cap(const std::string& owner) {
    equals_.erase(owner);
    administrator_->Set(owner, {{with_gpus_ ? CapKind::kGpus : CapKind::kCpus, kUnit},
                                {CapKind::kQueued, kOpenEach / 2}});
  }

  void StartService() {
    wire::LaunchSpec spec = SpecOf(kOwners[0], false);
    spec.function_name = kService;
    spec.ranks = static_cast<std::uint32_t>(kCpusOfNode * workers_count_ / 2);
    loop_.In(Minutes(1), "service", [this, spec] { clients_[0]->Submit(spec); });
  }

  wire::LaunchSpec SpecOf(const std::string& owner, bool first) const {
    wire::LaunchSpec spec;
    spec.function_name = owner;
    spec.mode = wire::LaunchMode::kDistributed;
    const bool gang = kind_ == Kind::kGang && first;
    spec.ranks = gang ? static_cast<std::uint32_t>(kCpusOfNode * workers_count_ / 2) : 1;
    spec.per_rank = {Whole("CPU", 1)};
    if (with_gpus_) spec.per_rank.push_back(Whole("GPU", 1));
    spec.attempts_max = 10;
    spec.stop_grace_ms = 1000;
    spec.exit_grace_ms = 1000;
    return spec;
  }

  void Strike(const Fault& fault) {
    WorkerHost* worker = workers_[fault.target].get();
    switch (fault.kind) {
      case FaultKind::kHeadCrash:
        if (!head_->up()) return;
        head_->Crash();
        return loop_.In(fault.lasts, "back", [this] { head_->Start(); });
      case FaultKind::kWorkerCrash:
        if (!worker->up()) return;
        worker->Crash();
        return loop_.In(fault.lasts, "back", [worker] { worker->Start(); });
      case FaultKind::kWorkerStop:
        return worker->StopUntil(loop_.Now() + fault.lasts);
      default:
        clients_[fault.target % clients_.size()]->ResetLink();
        return worker->ResetLink();
    }
  }

  void CheckEnd() {
    if (!head_->up()) head_->Start();
    people_.CheckUsage(head_->core().state());
    people_.CheckShares(equals_);
    checker_.Expect(people_.grants() > 24, "a day passed in which next to nothing was granted");
  }

  DayResult Result() {
    DayResult result;
    result.seed = seed_;
    result.trace = loop_.trace();
    result.events = loop_.events();
    result.grants = people_.grants();
    result.spread = people_.SpreadOf(equals_);
    result.longest_wait_s = Seconds(people_.longest_wait());
    result.plan = TextOf(plan_);
    result.failure = checker_.failure();
    return result;
  }

  const std::uint64_t seed_;
  SimLoop loop_;
  Checker checker_;
  PeopleChecker people_{loop_, checker_};
  Kind kind_ = Kind::kEquals;
  bool with_gpus_ = false;
  std::size_t workers_count_ = 0;
  FaultPlan plan_;
  Duration faults_last_{};
  std::map<std::string, std::uint64_t> runs_least_;
  std::set<std::string> equals_;
  std::unique_ptr<HeadHost> head_;
  std::unique_ptr<Administrator> administrator_;
  std::vector<std::unique_ptr<WorkerHost>> workers_;
  std::vector<std::unique_ptr<ClientHost>> clients_;
};

}  // namespace

DayResult RunDay(std::uint64_t seed, bool verbose) {
  return std::make_unique<Day>(seed, verbose)->Go();
}

}  // namespace troupe::sim
