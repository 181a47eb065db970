// A head with 10,000 nodes of 8 GPUs: the reducer and the journal of production, nodes and clients
// in memory.
//
// One thread does everything: decisions, commits with their syncs, and the answers of all nodes. No
// sockets: what those cost is measured by head_restart.py and placement_groups.py.
//   head_scale FOLDER [--nodes=10000] [--seconds=10]
// Prints one line of JSON.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "head/core/head_core.h"
#include "head/core/machine/snapshot.h"
#include "head/journal/sqlite_journal.h"
#include "runtime/base/random.h"
#include "tests/head/counting_mint.h"

namespace {

using namespace troupe;
using namespace troupe::head;
using RealTime = std::chrono::steady_clock;

constexpr std::uint64_t kUnitPerGpu = 10'000;
constexpr std::uint64_t kGpusPerNode = 8;
constexpr std::size_t kInFlight = 100;
constexpr std::size_t kWaiting = 10'000;
constexpr std::uint64_t kSnapshotEvery = 20'000;
constexpr std::size_t kBatch = 1'000;  // events

double SecondsSince(RealTime::time_point begin) {
  return std::chrono::duration<double>(RealTime::now() - begin).count();
}
double PeakMib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}
void Check(const Status& status, const char* doing) {
  if (status.ok()) return;
  std::fprintf(stderr, "head_scale: %s: %s\n", doing, MessageOf(status).c_str());
  std::exit(1);
}
wire::Resource Gpus(std::uint64_t count) {
  wire::Resource gpu;
  gpu.name = "GPU";
  gpu.ten_thousandths = count * kUnitPerGpu;
  return gpu;
}

struct Wanted {
  std::uint64_t gpus = 0;  // in all
  RealTime::time_point asked;
};

class Cluster {
 public:
  Cluster(std::string folder, std::size_t nodes)
      : folder_(std::move(folder)), nodes_(nodes), held_(nodes) {}

  // Opens the journal and makes a head of what is in it.
  double Start() {
    const auto begin = RealTime::now();
    SqliteOptions options;
    options.folder = folder_;
    auto opened = SqliteJournal::Open(options);
    Check(opened.status(), "open the journal");
    journal_ = *std::move(opened);
    core_ = std::make_unique<HeadCore>(CoreOptions(), Seams{random_, mint_});
    Check(journal_->Replay([this](const Row& row) { core_->Replay(row); }), "replay");
    Perform(core_->Start(Now(), WallUs()));
    Settle();
    return SecondsSince(begin);
  }
  void Crash() {
    core_.reset();
    journal_.reset();
    inputs_.clear();
    plan_wanted_ = false;
    rows_.clear();
  }

  // Every node registers, with what it holds.
  double JoinAll() {
    const auto begin = RealTime::now();
    registered_ = 0;
    for (std::size_t n = 0; n < nodes_; ++n) {
      SessionOpened opened;
      opened.session = SessionOf(n);
      opened.role = wire::Role::kWorker;
      opened.subject = NodeId(7, n + 1);
      Feed(opened);
      wire::RegisterNode body;
      body.node = NodeId(7, n + 1);
      body.name = body.host = body.boot_id = "node-" + std::to_string(n);
      body.listen_host = "10.1.0.1";
      body.listen_port = 7000;
      body.python_version = "3.11";
      body.incarnation = incarnation_;
      body.resources = {Gpus(kGpusPerNode)};
      body.labels = {{"block", "b" + std::to_string(n / 1024)},
                     {"rack", "r" + std::to_string(n / 32)}};
      for (const auto& [group, attempt] : held_[n]) {
        body.holdings.emplace_back();
        body.holdings.back().group = group;
        body.holdings.back().attempt = attempt;
      }
      Hear(SessionOf(n), std::move(body), 1);
    }
    Settle();
    incarnation_ = 1;
    if (registered_ != nodes_)
      Check(MakeError(ErrorCode::kInternal, "not all nodes were registered"), "join");
    return SecondsSince(begin);
  }
  void OpenClient() {
    SessionOpened opened;
    opened.session = client_;
    opened.role = wire::Role::kClient;
    opened.subject = Id128{9, 1};
    opened.local = true;
    Feed(opened);
    Settle();
  }

  // Groups as fast as they go, 100 in flight, the oldest removed while more than four fifths of the
  // GPUs are taken.
  void Sustain(double seconds) {
    const auto begin = RealTime::now();
    while (SecondsSince(begin) < seconds) {
      Beat();
      while (wanted_.size() < kInFlight) Create();
      while (taken_ * 5 > nodes_ * kGpusPerNode * 4 && !created_.empty()) RemoveOldest();
      Settle();
    }
    sustained_s_ = SecondsSince(begin);
  }
  // Submissions a second, one after the other, by when so many wait behind each other in a full
  // cluster.
  double QueueUp(std::size_t count) {
    const auto begin = RealTime::now();
    std::size_t submitted = 0;
    for (; wanted_.size() < count; ++submitted) {
      Beat();
      Create(1);
      Settle();
    }
    return static_cast<double>(submitted) / SecondsSince(begin);
  }
  // Measures how many waiting requests find a place in a second while one group is removed after
  // the other.
  double Turnover(double seconds) {
    const auto begin = RealTime::now();
    const std::size_t before = latencies_.size();
    while (SecondsSince(begin) < seconds && !created_.empty()) {
      Beat();
      RemoveOldest();
      Settle();
    }
    return static_cast<double>(latencies_.size() - before) / SecondsSince(begin);
  }
  // From here until one more group is there, with one of the oldest removed for each look: those
  // that waited when the head ended have taken what was free.
  double OneGroup() {
    const auto begin = RealTime::now();
    wanted_.clear();
    const std::size_t before = latencies_.size();
    Create(1);
    while (latencies_.size() == before) {
      if (created_.empty())
        Check(MakeError(ErrorCode::kInternal, "nothing is left to remove"), "place one more group");
      RemoveOldest();
      Settle();
    }
    return SecondsSince(begin);
  }

  std::size_t groups() const { return latencies_.size(); }
  std::size_t live() const { return created_.size(); }
  std::size_t events() const { return events_; }
  double sustained_s() const { return sustained_s_; }
  double snapshot_worst_s() const { return snapshot_worst_s_; }
  double LatencyMs(std::size_t percent) {
    std::vector<double> sorted = latencies_;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : 1e3 * sorted[(sorted.size() - 1) * percent / 100];
  }

 private:
  static SessionId SessionOf(std::size_t node) { return SessionId(100, node + 1); }
  Instant Now() const {
    return Instant{} + std::chrono::duration_cast<Duration>(RealTime::now().time_since_epoch());
  }
  std::uint64_t WallUs() const {
    return static_cast<std::uint64_t>(Now().time_since_epoch().count() / 1000);
  }

  template <class Body>
  void Hear(SessionId session, Body body, std::uint64_t id = 0) {
    MessageFrom input;
    input.session = session;
    input.message.id = id;
    input.message.body = std::move(body);
    Feed(std::move(input));
  }
  void Feed(Input input) { inputs_.push_back(std::move(input)); }

  // All nodes, every half second.
  void Beat() {
    if (RealTime::now() < beat_at_) return;
    beat_at_ = RealTime::now() + std::chrono::milliseconds(500);
    for (std::size_t n = 0; n < nodes_; ++n) Hear(SessionOf(n), wire::Heartbeat());
  }

  // Until nobody has anything to say.
  void Settle() {
    while (!inputs_.empty() || plan_wanted_ || !rows_.empty()) {
      while (!inputs_.empty() && rows_.size() < kBatch) {
        const Input input = std::move(inputs_.front());
        inputs_.pop_front();
        Perform(core_->Handle(input, Now(), WallUs()));
      }
      if (std::exchange(plan_wanted_, false)) Perform(core_->Handle(PlanNow(), Now(), WallUs()));
      if (!rows_.empty()) Commit();
    }
    if (wake_at_ && *wake_at_ <= Now()) {
      wake_at_.reset();
      Feed(Tick());
    }
  }
  void Commit() {
    const std::uint64_t last = rows_.back().sequence;
    events_ += rows_.size();
    Check(journal_->Append(rows_), "append");
    since_snapshot_ += rows_.size();
    rows_.clear();
    if (since_snapshot_ >= kSnapshotEvery) {
      const auto begin = RealTime::now();
      const std::vector<wire::Event> snapshot = SnapshotOf(core_->state());
      snapshot_worst_s_ = std::max(snapshot_worst_s_, SecondsSince(begin));
      Check(journal_->Snapshot(last, snapshot), "snapshot");
      since_snapshot_ = 0;
    }
    Perform(core_->Handle(Appended{last}, Now(), WallUs()));
  }
  void Perform(Effects effects) {
    for (Row& row : effects.append) rows_.push_back(std::move(row));
    if (effects.wake_at) wake_at_ = effects.wake_at;
    plan_wanted_ = plan_wanted_ || effects.plan_soon;
    for (Send& send : effects.sends) {
      if (send.to.session == client_) {
        Told(send.message);
      } else {
        Answer(static_cast<std::size_t>(send.to.session.lo) - 1, send.message);
      }
    }
  }
  void Answer(std::size_t node, const wire::Message& message) {
    if (wire::Holds<wire::NodeRegistered>(message.body)) ++registered_;
    if (const auto* reserve = wire::GetIf<wire::Reserve>(&message.body)) {
      held_[node].emplace(reserve->group, reserve->attempt);
      wire::ReserveReply reply;
      reply.group = reserve->group;
      reply.attempt = reserve->attempt;
      reply.granted = true;
      Hear(SessionOf(node), std::move(reply));
    }
    if (const auto* release = wire::GetIf<wire::Release>(&message.body)) {
      held_[node].erase({release->group, release->attempt});
      wire::Released released;
      released.group = release->group;
      released.attempt = release->attempt;
      Hear(SessionOf(node), std::move(released));
    }
  }
  void Told(const wire::Message& message) {
    const auto* update = wire::GetIf<wire::GroupUpdate>(&message.body);
    if (update == nullptr || update->info.state != wire::GroupState::kCreated) return;
    const auto wanted = wanted_.find(update->info.group);
    if (wanted == wanted_.end()) return;
    latencies_.push_back(SecondsSince(wanted->second.asked));
    taken_ += wanted->second.gpus;
    created_.emplace_back(update->info.group, wanted->second.gpus);
    wanted_.erase(wanted);
  }

  // Draws a request. Of ten: seven of one bundle of 1 to 8 GPUs, two of 2 to 8 whole nodes, nearly
  // one of 16 to 64, a few of 128 to 512.
  void Create(std::size_t only = 0) {
    const std::uint64_t draw = random_.Below(100);
    std::size_t bundles = 1;
    std::uint64_t gpus = kGpusPerNode;
    if (only != 0 || draw < 70) {
      gpus = std::uint64_t{1} << random_.Below(4);
    } else if (draw < 90) {
      bundles = 2 + random_.Below(7);
    } else if (draw < 99) {
      bundles = 16 + random_.Below(49);
    } else {
      bundles = 128 + random_.Below(385);
    }
    wire::CreateGroup create;
    create.group = GroupId(4, ++groups_);
    if (bundles > 8) create.where.level = "rack";
    wire::Bundle bundle;
    bundle.resources = {Gpus(gpus)};
    create.bundles.assign(bundles, bundle);
    for (std::size_t i = 0; i < bundles; ++i)
      create.bundles[i].index = static_cast<std::uint32_t>(i);
    wanted_[create.group] = {bundles * gpus, RealTime::now()};
    Hear(client_, std::move(create), ++requests_);
  }
  void RemoveOldest() {
    wire::RemoveGroup remove;
    remove.group = created_.front().first;
    taken_ -= created_.front().second;
    created_.pop_front();
    Hear(client_, remove, ++requests_);
  }

  const std::string folder_;
  const std::size_t nodes_;
  const SessionId client_{200, 1};
  Prng random_{7};
  CountingMint mint_;
  std::unique_ptr<SqliteJournal> journal_;
  std::unique_ptr<HeadCore> core_;
  std::deque<Input> inputs_;
  std::vector<Row> rows_;
  std::optional<Instant> wake_at_;
  RealTime::time_point beat_at_{};
  bool plan_wanted_ = false;
  std::vector<std::set<std::pair<GroupId, std::uint64_t>>> held_;
  std::uint64_t incarnation_ = 0;  // equal for every node
  std::size_t registered_ = 0;
  std::map<GroupId, Wanted> wanted_;
  std::deque<std::pair<GroupId, std::uint64_t>> created_;
  std::uint64_t taken_ = 0;  // GPUs
  std::uint64_t groups_ = 0;
  std::uint64_t requests_ = 1;
  std::size_t events_ = 0;
  std::uint64_t since_snapshot_ = 0;
  double snapshot_worst_s_ = 0;
  double sustained_s_ = 0;
  std::vector<double> latencies_;
};

}  // namespace

int main(int argc, char** argv) {
  std::size_t nodes = 10'000;
  double seconds = 10;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--nodes=", 0) == 0) {
      nodes = std::strtoull(argument.c_str() + 8, nullptr, 10);
    } else if (argument.rfind("--seconds=", 0) == 0) {
      seconds = std::strtod(argument.c_str() + 10, nullptr);
    } else {
      folder = argument;
    }
  }
  if (folder.empty()) {
    std::fprintf(stderr, "usage: head_scale FOLDER [--nodes=N] [--seconds=S]\n");
    return 2;
  }
  std::filesystem::create_directories(folder);
  Cluster cluster(folder, nodes);
  cluster.Start();
  const double join_s = cluster.JoinAll();
  cluster.OpenClient();
  cluster.Sustain(seconds);
  const std::size_t groups = cluster.groups();
  const double p50 = cluster.LatencyMs(50);
  const double p99 = cluster.LatencyMs(99);
  const double peak_mib = PeakMib();
  cluster.Crash();
  const double ready_s = cluster.Start();
  const double rejoin_s = cluster.JoinAll();
  cluster.OpenClient();
  const double first_group_s = cluster.OneGroup();
  const double peak_after_restart_mib = PeakMib();
  const double queue_up = cluster.QueueUp(kWaiting);
  const double turnover = cluster.Turnover(5);
  std::printf(
      "{\"nodes\": %zu, \"join_s\": %.3f, \"groups\": %zu, \"groups_per_s\": %.0f, \"events\": "
      "%zu, "
      "\"p50_ms\": %.2f, \"p99_ms\": %.2f, \"live_groups\": %zu, \"snapshot_worst_ms\": %.1f, "
      "\"peak_mib\": %.0f, "
      "\"restart_ready_s\": %.3f, \"restart_all_registered_s\": %.3f, \"restart_first_group_s\": "
      "%.3f, "
      "\"peak_after_restart_mib\": %.0f, \"submitted_per_s_till_%zu_wait\": %.0f, "
      "\"placed_per_s_while_so_many_wait\": %.0f}\n",
      nodes, join_s, groups, static_cast<double>(groups) / cluster.sustained_s(), cluster.events(),
      p50, p99, cluster.live(), 1e3 * cluster.snapshot_worst_s(), peak_mib, ready_s,
      ready_s + rejoin_s, ready_s + rejoin_s + first_group_s, peak_after_restart_mib, kWaiting,
      queue_up, turnover);
  return 0;
}
