// Method: the record of a `troupe run` with nodes that join one by one, a driver that completes or
// vanishes, and watchers that come early, late and leave; what each is told is compared.
#include "head/core/launched/runs.h"

#include "head/core/machine/snapshot.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class Runs : public HeadFixture {
 protected:
  void SetUp() override {
    driver_ = Open(wire::Role::kClient, Id128{9, 1}, true);
    run_ = Start(2);
  }
  LaunchId Start(std::uint32_t nodes) {
    wire::SubmitLaunch submit;
    submit.spec.mode = wire::LaunchMode::kCommand;
    submit.spec.ranks = nodes;
    submit.spec.name = "python train.py";
    submit.request = RequestId(11, ++requests_);
    Say(driver_, submit, 7);
    return Last<wire::LaunchAccepted>(driver_).launch;
  }
  void Acquire() {
    wire::AcquireDriver acquire;
    acquire.launch = run_;
    acquire.epoch = 1;
    acquire.nonce = RequestId(12, 1);
    Say(driver_, acquire, 8);
  }
  void End(wire::Outcome outcome, std::int32_t code) {
    wire::Complete complete;
    complete.launch = run_;
    complete.epoch = 1;
    complete.request = RequestId(13, 1);
    complete.outcome = outcome;
    complete.exit_code = code;
    Say(driver_, complete, 9);
  }
  SessionId Watcher(std::uint64_t number) {
    const SessionId session = Open(wire::Role::kClient, Id128{9, number});
    wire::WatchLaunch watch;
    watch.launch = run_;
    Say(session, watch, 3);
    return session;
  }
  wire::LaunchInfo Told(SessionId session) { return Last<wire::LaunchUpdate>(session).info; }

  SessionId driver_;
  LaunchId run_;
};

TEST_F(Runs, RunsOnceItsNodesAreThere) {
  EXPECT_EQ(LaunchOf(run_).phase, wire::LaunchState::kStarting);
  Join(1, 2);
  EXPECT_EQ(LaunchOf(run_).phase, wire::LaunchState::kStarting);
  EXPECT_EQ(Told(driver_).waiting_for, "1 of 2 nodes are there: node-a");
  Join(2, 2);
  EXPECT_EQ(Told(driver_).state, wire::LaunchState::kRunning);
  EXPECT_EQ(Told(driver_).waiting_for, "");
}

TEST_F(Runs, ANodeThatLeftDoesNotCount) {
  const FakeNode a = Join(1, 2);
  Say(a.session, wire::Goodbye());
  Feed(SessionClosed{a.session});
  Join(2, 2);
  EXPECT_EQ(LaunchOf(run_).phase, wire::LaunchState::kStarting);
  Join(3, 2);
  EXPECT_EQ(LaunchOf(run_).phase, wire::LaunchState::kRunning);
}

TEST_F(Runs, S9_TheDriversEndIsTheMarkerForEveryWatcher) {
  Join(1, 2);
  Join(2, 2);
  const SessionId early = Watcher(2);
  Acquire();
  End(wire::Outcome::kFailed, 3);
  EXPECT_EQ(Last<wire::MarkerReply>(driver_).marker.exit_code, 3);
  EXPECT_EQ(Told(early).exit_code, 3);
  EXPECT_EQ(Told(early).outcome, wire::Outcome::kFailed);
  EXPECT_EQ(Told(Watcher(3)).exit_code, 3) << "one that comes late is told at once";
}

TEST_F(Runs, MayEndBeforeItsNodesCame) {
  Acquire();
  End(wire::Outcome::kFailed, 1);
  EXPECT_EQ(LaunchOf(run_).phase, wire::LaunchState::kTerminal);
  Join(1, 2);
  Join(2, 2);
  EXPECT_EQ(LaunchOf(run_).phase, wire::LaunchState::kTerminal);
}

TEST_F(Runs, S2_WithoutTheLeaseNobodyCompletesIt) {
  Join(1, 2);
  Join(2, 2);
  End(wire::Outcome::kSucceeded, 0);
  EXPECT_EQ(LastError(driver_), ErrorCode::kFenced);
  EXPECT_EQ(Markers(), 0u);
}

TEST_F(Runs, TheEndOfItsDriversProcessCancelsIt) {
  Join(1, 2);
  Join(2, 2);
  const SessionId watcher = Watcher(2);
  Acquire();
  Feed(SessionClosed{driver_});
  EXPECT_EQ(Told(watcher).outcome, wire::Outcome::kCancelled);
  EXPECT_EQ(Told(watcher).exit_code, 130);
}

TEST_F(Runs, WatchersThatLeaveAfterItsEndAreCounted) {
  Join(1, 2);
  Join(2, 2);
  const SessionId watcher = Watcher(2);
  Acquire();
  End(wire::Outcome::kSucceeded, 0);
  EXPECT_EQ(Told(driver_).watchers, 2u);
  Feed(SessionClosed{watcher});
  EXPECT_EQ(Told(driver_).watchers, 1u);
}

TEST_F(Runs, ARestartedHeadGoesOnCounting) {
  Join(1, 2);
  Boot();
  EXPECT_EQ(core_->state().waiting_runs.count(run_), 1u);
  EXPECT_EQ(LaunchOf(run_).phase, wire::LaunchState::kStarting);
}

TEST_F(Runs, AHeadRestartedFromASnapshotGoesOnCounting) {
  Join(1, 2);
  durable_ = SnapshotOf(core_->state());
  Boot();
  EXPECT_EQ(core_->state().waiting_runs.count(run_), 1u);
  Join(1, 2);
  Join(2, 2);
  EXPECT_EQ(LaunchOf(run_).phase, wire::LaunchState::kRunning);
}

TEST_F(Runs, WhatARunCannotBeIsRefused) {
  wire::SubmitLaunch submit;
  submit.spec.mode = wire::LaunchMode::kCommand;
  submit.spec.ranks = 0;
  submit.request = RequestId(11, 99);
  Say(driver_, submit, 20);
  EXPECT_EQ(LastError(driver_), ErrorCode::kInvalid);
  submit.spec.ranks = 1;
  submit.spec.per_rank = Amounts(1);
  submit.request = RequestId(11, 98);
  Say(driver_, submit, 21);
  EXPECT_EQ(LastError(driver_), ErrorCode::kInvalid);
}

TEST_F(Runs, ANodeThatSpeaksOfRanksOfARunIsIgnored) {
  const FakeNode a = Join(1, 2);
  Join(2, 2);
  wire::RanksReady ready;
  ready.launch = run_;
  ready.epoch = 1;
  ready.generation = 1;
  Say(a.session, ready);
  Finish(a, run_, 0);
  EXPECT_EQ(LaunchOf(run_).phase, wire::LaunchState::kRunning);
}

}  // namespace
}  // namespace troupe::head
