// A HeadCore with peers made of words: sessions, nodes that answer, and a journal that commits when
// told to. Sends are collected per session.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "head/core/head_core.h"
#include "head/core/machine/apply.h"
#include "tests/head/counting_mint.h"

namespace troupe::head {

class HeadFixture : public ::testing::Test {
 protected:
  HeadFixture() {
    options_.keep_after = Duration::zero();  // the first waiting group keeps a place at once
    Boot();
  }

  /// A head that has replayed what is durable.
  void Boot() {
    core_ = std::make_unique<HeadCore>(options_, Seams{random_, mint_});
    std::uint64_t sequence = 0;
    for (const wire::Event& event : durable_) core_->Replay({++sequence, event});
    pending_.clear();
    Take(core_->Start(now_, WallUs()));
  }
  std::uint64_t WallUs() const {
    return wall_at_zero_us_ + static_cast<std::uint64_t>((now_ - Instant{}).count() / 1000);
  }

  void Feed(const Input& input) { Take(core_->Handle(input, now_, WallUs())); }
  virtual void See(const Effects&) {}
  void Take(Effects effects) {
    See(effects);
    for (Row& row : effects.append) pending_.push_back(std::move(row));
    for (Send& send : effects.sends) sent_.push_back(std::move(send));
    for (Close& close : effects.closes) closed_.push_back(std::move(close));
    for (Probe& probe : effects.probes) probes_.push_back(probe);
    for (Look& look : effects.looks) looks_.push_back(look);
    for (EndedRecord& record : effects.archive) archived_.push_back(std::move(record));
    for (Recall& recall : effects.recalls) recalls_.push_back(recall);
    if (effects.archived_until_us != 0) archived_until_us_ = effects.archived_until_us;
    if (effects.wake_at) wake_at_ = effects.wake_at;
    if (effects.plan_soon) Feed(PlanNow());
    if (auto_commit_) Commit();
  }
  void Commit() {
    while (!pending_.empty()) {
      std::uint64_t last = 0;
      for (Row& row : pending_) {
        last = row.sequence;
        durable_.push_back(row.event);
      }
      pending_.clear();
      Feed(Appended{last});
    }
  }
  void Advance(Duration by) {
    const Instant target = now_ + by;
    while (wake_at_ && *wake_at_ <= target) {
      now_ = *wake_at_;
      wake_at_.reset();
      Feed(Tick());
    }
    now_ = target;
  }

  SessionId Open(wire::Role role, Id128 subject, bool local = false) {
    SessionOpened opened;
    opened.session = SessionId(100, ++sessions_);
    opened.role = role;
    opened.subject = subject;
    opened.local = local;
    Feed(opened);
    return opened.session;
  }
  template <class Body>
  void Say(SessionId session, Body body, std::uint64_t id = 0, std::string attachment = {}) {
    MessageFrom input;
    input.session = session;
    input.message.id = id;
    input.message.body = std::move(body);
    input.message.attachment = std::move(attachment);
    Feed(input);
  }
  template <class Body>
  void SayFor(SessionId session, wire::Relay relay, Body body, std::uint64_t id = 1) {
    MessageFrom input;
    input.session = session;
    input.relay = relay;
    input.message.id = id;
    input.message.body = std::move(body);
    Feed(input);
  }

  struct FakeNode {
    NodeId id;
    SessionId session;
    std::uint64_t incarnation = 0;
  };
  static std::vector<wire::Resource> Amounts(std::uint64_t cpus, std::uint64_t gpus = 0) {
    std::vector<wire::Resource> list(1);
    list[0].name = "CPU";
    list[0].ten_thousandths = cpus * 10000;
    if (gpus > 0) {
      list.emplace_back();
      list[1].name = "GPU";
      list[1].ten_thousandths = gpus * 10000;
    }
    return list;
  }
  FakeNode Join(std::uint64_t number, std::uint64_t cpus, std::uint64_t gpus = 0,
                wire::RegisterNode report = {}) {
    FakeNode node;
    node.id = NodeId(7, number);
    node.session = Open(wire::Role::kWorker, node.id);
    report.node = node.id;
    report.name = "node-" + std::string(1, static_cast<char>('a' + number - 1));
    report.resources = Amounts(cpus, gpus);
    Say(node.session, report, 1);
    node.incarnation = Last<wire::NodeRegistered>(node.session).incarnation;
    return node;
  }
  /// Says no to the one Reserve that waits for this node.
  void RefuseReserve(const FakeNode& node,
                     const std::string& reason = "a process has not gone yet") {
    const std::vector<wire::Reserve> asked = Take<wire::Reserve>(node.session);
    ASSERT_EQ(asked.size(), 1u);
    wire::ReserveReply no;
    no.group = asked[0].group;
    no.attempt = asked[0].attempt;
    no.reason = reason;
    Say(node.session, no);
  }
  /// The node grants what the head has asked it to reserve.
  void Grant(const FakeNode& node) {
    for (const wire::Reserve& reserve : Take<wire::Reserve>(node.session)) {
      wire::ReserveReply reply;
      reply.group = reserve.group;
      reply.attempt = reserve.attempt;
      reply.granted = true;
      Say(node.session, reply);
    }
  }
  /// Answers every Reserve, StartRanks and Release that waits for this node.
  void Serve(const FakeNode& node) {
    Grant(node);
    for (const wire::StartRanks& start : Take<wire::StartRanks>(node.session)) {
      wire::RanksReady ready;
      ready.launch = start.launch;
      ready.epoch = start.epoch;
      ready.generation = start.generation;
      ready.store_host = "10.0.0.1";
      ready.store_port = 4242;
      ready.started_from = "forked from a zygote with lightning";
      Say(node.session, ready);
    }
    for (const wire::Release& release : Take<wire::Release>(node.session)) {
      wire::Released released;
      released.group = release.group;
      released.attempt = release.attempt;
      Say(node.session, released);
    }
  }
  /// The processes of all actors that the node is to start are there.
  void StartActors(const FakeNode& node) {
    for (const wire::StartActor& start : Take<wire::StartActor>(node.session)) {
      wire::ActorStarted started;
      started.actor = start.actor;
      started.incarnation = start.incarnation;
      Say(node.session, started);
    }
  }
  LaunchId Submit(SessionId client, std::uint32_t ranks, std::uint32_t attempts = 1,
                  wire::LaunchMode mode = wire::LaunchMode::kDistributed,
                  std::int32_t priority = 0) {
    wire::SubmitLaunch submit;
    submit.spec.priority = priority;
    submit.spec.ranks = ranks;
    submit.spec.mode = mode;
    submit.spec.per_rank = Amounts(1);
    submit.spec.attempts_max = attempts;
    submit.spec.timeout_ms = timeout_ms_;
    submit.request = RequestId(11, ++requests_);
    Say(client, submit, 1000 + requests_);
    return Last<wire::LaunchAccepted>(client).launch;
  }
  void Finish(const FakeNode& node, LaunchId launch, std::uint32_t rank, std::uint64_t epoch = 1,
              wire::Outcome outcome = wire::Outcome::kSucceeded) {
    wire::RankDone done;
    done.launch = launch;
    done.epoch = epoch;
    done.generation = 1;
    done.rank = rank;
    done.outcome = outcome;
    Say(node.session, done, 0, "value");
  }
  wire::Relay DriverOf(LaunchId launch, std::uint64_t epoch = 1) {
    wire::Relay relay;
    relay.process = ProcessId(8 + launch.lo, epoch);
    relay.launch = launch;
    relay.epoch = epoch;
    relay.rank = 0;
    return relay;
  }
  void Acquire(const FakeNode& node, LaunchId launch, std::uint64_t epoch, RequestId nonce) {
    wire::AcquireDriver acquire;
    acquire.launch = launch;
    acquire.epoch = epoch;
    acquire.nonce = nonce;
    SayFor(node.session, DriverOf(launch, epoch), acquire);
  }
  void Complete(const FakeNode& node, LaunchId launch, std::uint64_t epoch, RequestId request) {
    wire::Complete complete;
    complete.launch = launch;
    complete.epoch = epoch;
    complete.request = request;
    complete.outcome = wire::Outcome::kSucceeded;
    SayFor(node.session, DriverOf(launch, epoch), complete);
  }

  template <class Body>
  std::size_t Count(SessionId session) const {
    std::size_t count = 0;
    for (const Send& send : sent_) {
      count += send.to.session == session && wire::Holds<Body>(send.message.body) ? 1 : 0;
    }
    return count;
  }
  template <class Body>
  Body Last(SessionId session) const {
    for (auto it = sent_.rbegin(); it != sent_.rend(); ++it) {
      if (it->to.session != session) continue;
      if (const auto* body = wire::GetIf<Body>(&it->message.body)) return *body;
    }
    ADD_FAILURE() << "no such message was sent";
    return Body();
  }
  ErrorCode LastError(SessionId session) const {
    return static_cast<ErrorCode>(Last<wire::ErrorReply>(session).code);
  }
  /// Removes and returns.
  template <class Body>
  std::vector<Body> Take(SessionId session) {
    std::vector<Body> found;
    for (auto it = sent_.begin(); it != sent_.end();) {
      auto* body = wire::GetIf<Body>(&it->message.body);
      if (it->to.session != session || body == nullptr) {
        ++it;
        continue;
      }
      found.push_back(std::move(*body));
      it = sent_.erase(it);
    }
    return found;
  }
  static State Folded(const std::vector<wire::Event>& events) {
    State state;
    for (const wire::Event& event : events) Apply(state, event);
    return state;
  }
  const Launch& LaunchOf(LaunchId id) const { return core_->state().launches.at(id); }
  /// Returns the registration of a node that comes back with all that it has of a launch.
  wire::RegisterNode WhatIsOn(const FakeNode& node, LaunchId id) const {
    const Launch& launch = LaunchOf(id);
    wire::RegisterNode report;
    report.incarnation = node.incarnation;
    for (std::uint32_t rank = 0; rank < launch.ranks.size(); ++rank) {
      if (launch.ranks[rank].node != node.id) continue;
      wire::HeldRank held;
      held.launch = id;
      held.epoch = launch.epoch;
      held.generation = 1;
      held.rank = rank;
      report.ranks.push_back(held);
    }
    wire::Holding holding;
    holding.group = launch.group;
    holding.attempt = launch.attempt;
    report.holdings.push_back(holding);
    return report;
  }
  std::size_t Markers() const {
    std::size_t count = 0;
    for (const wire::Event& event : durable_) {
      count += wire::Holds<wire::MarkerWritten>(event.body) ? 1 : 0;
    }
    return count;
  }

  Instant now_{std::chrono::seconds(1000)};
  std::uint64_t wall_at_zero_us_ = 100'000'000'000;  // changed by a clock that jumps
  Prng random_{42};
  CountingMint mint_;
  CoreOptions options_;  // the next Boot's
  std::unique_ptr<HeadCore> core_;
  std::vector<wire::Event> durable_;
  std::vector<Row> pending_;
  std::vector<Send> sent_;
  std::vector<Close> closed_;
  std::vector<Probe> probes_;
  std::vector<Look> looks_;
  std::vector<EndedRecord> archived_;  // handed out to be written, in order
  std::vector<Recall> recalls_;
  std::uint64_t archived_until_us_ = 0;
  std::optional<Instant> wake_at_;
  bool auto_commit_ = true;
  std::uint64_t sessions_ = 0;
  std::uint64_t timeout_ms_ = 0;  // timeout of submitted launches
  std::uint64_t requests_ = 0;
};

}  // namespace troupe::head
