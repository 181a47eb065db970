// A WorkerCore with made-up facts, and short words to play head and processes to it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/wire/frame.h"
#include "worker/core/worker_core.h"

namespace troupe::worker {

class CoreFixture : public ::testing::Test {
 protected:
  static NodeFacts Facts() {
    NodeFacts facts;
    facts.name = "node-a";
    facts.host = "host-a";
    facts.boot_id = "boot";
    facts.listen_host = "10.0.0.1";
    facts.listen_port = 7000;
    facts.socket_dir = "/run/t";
    facts.result_dir = "/var/t/results";
    facts.head_address = "10.0.0.9:6400";
    facts.python_version = "3.11";
    facts.capacity = {{kCpu, 8 * kWhole}, {kGpu, 2 * kWhole}};
    facts.gpu_ids = {0, 1};
    facts.choose_interface = [](const std::vector<std::string>& peers) {
      return peers.empty() ? Interface{"lo", "127.0.0.1"} : Interface{"eth1", "10.0.0.1"};
    };
    facts.sha256 = [](std::string_view bytes) { return "sha:" + std::string(bytes); };
    return facts;
  }

  CoreFixture() { Restart(); }
  /// A new life of the worker: nothing of the old one is known.
  void Restart() {
    core_ = std::make_unique<WorkerCore>(Facts(), CoreLimits(), RememberedState(), random_);
  }

  template <class Body>
  static wire::Message Make(Body body, std::string attachment = "") {
    wire::Message message;
    message.body = std::move(body);
    message.attachment = std::move(attachment);
    return message;
  }
  template <class Body>
  void Head(Body body, std::string attachment = "") {
    Take(core_->OnHeadMessage(Make(std::move(body), std::move(attachment)), now_));
  }
  template <class Body>
  void FromProcess(ProcessId id, Body body, std::string attachment = "", std::uint64_t number = 0) {
    wire::Message message = Make(std::move(body), std::move(attachment));
    message.id = number;
    Take(core_->OnProcessMessage(id, std::move(message), now_));
  }

  void Join(std::uint64_t head_incarnation = 1) {
    HeadSession session;
    session.cluster = ClusterId(1, 1);
    session.node = NodeId(2, 2);
    session.head_incarnation = head_incarnation;
    Take(core_->OnHeadUp(session, now_));
    wire::NodeRegistered registered;
    registered.node = NodeId(2, 2);
    registered.incarnation = 5;
    registered.name = "node-a";
    registered.heartbeat_ms = 1000;
    registered.lease_ms = 5000;
    Head(registered);
  }
  wire::ReserveReply ReserveCpus(GroupId group, std::uint64_t attempt, std::uint64_t cpus,
                                 std::uint64_t gpus = 0, GroupId parent = GroupId()) {
    wire::Reserve reserve;
    reserve.group = group;
    reserve.attempt = attempt;
    reserve.parent = parent;
    wire::Bundle bundle;
    bundle.resources = AmountsToWire({{kCpu, cpus * kWhole}});
    if (gpus > 0) bundle.resources = AmountsToWire({{kCpu, cpus * kWhole}, {kGpu, gpus * kWhole}});
    reserve.bundles = {bundle};
    Head(reserve);
    return Last<wire::ReserveReply>();
  }
  wire::StartRanks Ranks(std::uint32_t count, std::uint64_t epoch = 1,
                         wire::LaunchMode mode = wire::LaunchMode::kDistributed) {
    wire::StartRanks start;
    start.launch = launch_;
    start.epoch = epoch;
    start.group = group_;
    start.attempt = epoch;
    start.mode = mode;
    start.name = "train";
    start.world_size = count;
    start.node_count = 1;
    start.hosts_store = true;
    for (std::uint32_t i = 0; i < count; ++i) {
      wire::RankPlace place;
      place.rank = place.local_rank = i;
      start.ranks.push_back(place);
    }
    return start;
  }
  /// Reserves, starts, forks everything. Ranks' processes are in ranks_, the store's in store_.
  void StartLaunch(std::uint32_t count, std::uint64_t epoch = 1,
                   wire::LaunchMode mode = wire::LaunchMode::kDistributed) {
    ASSERT_TRUE(ReserveCpus(group_, epoch, count).granted);
    log_.clear();
    Head(Ranks(count, epoch, mode), "payload");
    ranks_.clear();
    int pid = 100 * static_cast<int>(epoch);
    for (const StartProcess& start : All<StartProcess>()) {
      if (start.request.kind == wire::ProcessKind::kStore) {
        store_ = start.request.process;
      } else {
        ranks_.push_back(start.request.process);
      }
      Take(core_->OnForked(start.request.process, ++pid, now_));
    }
  }
  void MakeReady() {
    for (const ProcessId rank : ranks_) FromProcess(rank, wire::RankPrepared());
    wire::StoreReady store;
    store.port = 4242;
    FromProcess(store_, store);
  }
  void Exit(ProcessId id, int code = 0, int signal = 0) {
    ExitInfo exit;
    exit.exit_code = code;
    exit.signal = signal;
    Take(core_->OnExited(id, exit, now_));
  }
  void Over(ProcessId id, int code = 0, int signal = 0) {
    Exit(id, code, signal);
    Take(core_->OnDrained(id, now_));
    Take(core_->OnGone(id, now_));
  }
  void Advance(Duration by) {
    now_ += by;
    Take(core_->OnTimer(now_));
  }

  void Take(Effects effects) {
    EXPECT_TRUE(core_->leases().Conserves()) << "P1";
    for (Effect& each : effects) log_.push_back(std::move(each));
  }
  /// Messages of this kind sent to the head since the log was cleared.
  template <class Body>
  std::vector<wire::Message> Sent() const {
    std::vector<wire::Message> found;
    for (const Effect& effect : log_) {
      const auto* to_head = std::get_if<ToHead>(&effect);
      if (to_head && wire::Holds<Body>(to_head->message.body)) {
        found.push_back(to_head->message);
      }
    }
    return found;
  }
  template <class Body>
  Body Last() const {
    const auto found = Sent<Body>();
    return found.empty() ? Body() : wire::Get<Body>(found.back().body);
  }
  template <class Body>
  std::vector<ProcessId> SentToProcesses() const {
    std::vector<ProcessId> found;
    for (const Effect& effect : log_) {
      const auto* to = std::get_if<ToProcess>(&effect);
      if (to && wire::Holds<Body>(to->message.body)) found.push_back(to->process);
    }
    return found;
  }
  template <class Kind>
  std::vector<Kind> All() const {
    std::vector<Kind> found;
    for (const Effect& effect : log_) {
      if (const auto* kind = std::get_if<Kind>(&effect)) found.push_back(*kind);
    }
    return found;
  }
  std::vector<int> SignalsTo(ProcessId id) const {
    std::vector<int> signals;
    for (const SignalProcess& each : All<SignalProcess>()) {
      if (each.process == id) signals.push_back(each.signal);
    }
    return signals;
  }

  const LaunchId launch_{3, 3};
  const GroupId group_{4, 4};
  Instant now_{std::chrono::seconds(100)};
  Prng random_{7};
  std::unique_ptr<WorkerCore> core_;
  Effects log_;
  std::vector<ProcessId> ranks_;
  ProcessId store_;
};

}  // namespace troupe::worker
