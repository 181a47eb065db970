// A launch of four ranks on two nodes that is brought to RUNNING, and whose ranks die, come to the
// re-form of their group, and say that others are late.
#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "head/core/launched/gang/regroup.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {

class Regroups : public HeadFixture {
 protected:
  void Run(wire::RankDeath policy = wire::RankDeath::kShrink, std::uint32_t least = 2,
           std::uint32_t attempts = 1) {
    a_ = Join(1, 2);
    b_ = Join(2, 2);
    client_ = Open(wire::Role::kClient, Id128{9, 1});
    wire::SubmitLaunch submit = Wanted(policy, least, attempts);
    Say(client_, submit, 70);
    launch_ = Last<wire::LaunchAccepted>(client_).launch;
    for (int i = 0; i < 2; ++i) {
      Serve(a_);
      Serve(b_);
    }
    ASSERT_EQ(LaunchOf(launch_).phase, wire::LaunchState::kRunning);
  }
  wire::SubmitLaunch Wanted(wire::RankDeath policy, std::uint32_t least,
                            std::uint32_t attempts) const {
    wire::SubmitLaunch submit;
    submit.spec.ranks = 4;
    submit.spec.mode = wire::LaunchMode::kDistributed;
    submit.spec.per_rank = Amounts(1);
    submit.spec.attempts_max = attempts;
    submit.spec.on_rank_death = policy;
    submit.spec.ranks_min = least;
    submit.spec.hang_ms = hang_ms_;
    submit.request = RequestId(11, 70);
    return submit;
  }
  const FakeNode& NodeOf(std::uint32_t rank) {
    return LaunchOf(launch_).ranks[rank].node == a_.id ? a_ : b_;
  }
  wire::RankDone DoneOf(std::uint32_t rank, wire::Outcome outcome) {
    wire::RankDone done;
    done.launch = launch_;
    done.epoch = LaunchOf(launch_).epoch;
    done.generation = 1;
    done.rank = rank;
    done.outcome = outcome;
    done.life = LaunchOf(launch_).ranks[rank].life;
    return done;
  }
  void Kill(std::uint32_t rank) {
    wire::RankDone done = DoneOf(rank, wire::Outcome::kFailed);
    done.failure.signal = SIGKILL;
    done.failure.cause = "rank " + std::to_string(rank) + " was killed by SIGKILL";
    Say(NodeOf(rank).session, done);
  }
  void Raise(std::uint32_t rank, const std::string& type, bool symptom = false) {
    wire::RankDone done = DoneOf(rank, wire::Outcome::kFailed);
    done.failure.kind = wire::FailureKind::kRaised;
    done.failure.exception_type = type;
    done.failure.cause = type;
    done.failure.symptom = symptom;
    Say(NodeOf(rank).session, done);
  }
  void Return(std::uint32_t rank) {
    Say(NodeOf(rank).session, DoneOf(rank, wire::Outcome::kSucceeded), 0, "value");
  }
  /// The node says that these of its ranks have come.
  void Come(const FakeNode& node, std::uint64_t group_epoch, std::vector<std::uint32_t> ranks) {
    wire::GroupJoined joined;
    joined.launch = launch_;
    joined.epoch = LaunchOf(launch_).epoch;
    joined.group_epoch = group_epoch;
    joined.ranks = std::move(ranks);
    joined.store_host = node.id == a_.id ? "10.0.0.1" : "10.0.0.2";
    joined.store_port = static_cast<std::uint16_t>(4000 + group_epoch);
    Say(node.session, joined);
  }
  static std::vector<std::uint32_t> RanksOf(const wire::PeersLost& word) {
    std::vector<std::uint32_t> ranks;
    for (const wire::Failure& each : word.lost)
      ranks.push_back(static_cast<std::uint32_t>(each.rank));
    return ranks;
  }
  void Restart() {
    Boot();
    sent_.clear();
    for (FakeNode* node : {&a_, &b_}) Back(*node);
  }
  void Back(FakeNode& node) { node = Join(node.id.lo, 2, 0, WhatIsOn(node, launch_)); }
  void Pass(std::chrono::seconds time, bool b_too = true) {
    for (auto i = std::chrono::seconds(0); i < time; ++i) {
      Say(a_.session, wire::Heartbeat());
      if (b_too) Say(b_.session, wire::Heartbeat());
      Advance(std::chrono::seconds(1));
    }
  }
  bool Open() { return !LaunchOf(launch_).marker.has_value(); }
  const wire::Marker& Marker() { return *LaunchOf(launch_).marker; }
  using HeadFixture::Open;

  std::uint32_t hang_ms_ = 0;
  FakeNode a_, b_;
  SessionId client_;
  LaunchId launch_;
};

}  // namespace troupe::head
