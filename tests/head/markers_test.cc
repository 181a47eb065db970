// Method: a launch is brought to the moment in question by words of its peers; then the operation
// of the marker specification is played, its repeats and its rivals too. Names carry the
// invariants.
#include "head/core/launched/markers.h"

#include "head/core/machine/durable_text.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class Markers : public HeadFixture {
 protected:
  void Run(std::uint32_t attempts = 1, wire::LaunchMode mode = wire::LaunchMode::kDriver) {
    node_ = Join(1, 4);
    client_ = Open(wire::Role::kClient, Id128{9, 1});
    launch_ = Submit(client_, 2, attempts, mode);
    Serve(node_);
    Serve(node_);
    ASSERT_EQ(LaunchOf(launch_).phase, wire::LaunchState::kRunning);
  }
  FakeNode node_;
  SessionId client_;
  LaunchId launch_;
};

TEST_F(Markers, S5_NobodyHearsBeforeTheJournalHasIt) {
  Run();
  Acquire(node_, launch_, 1, RequestId(1, 1));
  sent_.clear();
  auto_commit_ = false;
  Complete(node_, launch_, 1, RequestId(2, 2));
  EXPECT_TRUE(sent_.empty());
  Commit();
  EXPECT_EQ(Last<wire::MarkerReply>(node_.session).marker.outcome, wire::Outcome::kSucceeded);
  EXPECT_EQ(Last<wire::LaunchUpdate>(client_).info.state, wire::LaunchState::kTerminal);
  EXPECT_TRUE(Last<wire::EndEpoch>(node_.session).terminal);
}

TEST_F(Markers, S5_OneCommitFromCompleteToTheCaller) {
  Run();
  Acquire(node_, launch_, 1, RequestId(1, 1));
  sent_.clear();
  auto_commit_ = false;
  Complete(node_, launch_, 1, RequestId(2, 2));
  const std::uint64_t last = pending_.back().sequence;
  for (Row& row : pending_) durable_.push_back(row.event);
  pending_.clear();
  Feed(Appended{last});
  EXPECT_EQ(Count<wire::LaunchUpdate>(client_), 1u);
}

TEST_F(Markers, S9_RepeatedCompleteGetsTheSameMarker) {
  Run();
  Acquire(node_, launch_, 1, RequestId(1, 1));
  Complete(node_, launch_, 1, RequestId(2, 2));
  const wire::Marker first = Last<wire::MarkerReply>(node_.session).marker;
  Complete(node_, launch_, 1, RequestId(2, 2));
  EXPECT_EQ(Last<wire::MarkerReply>(node_.session).marker, first);
  EXPECT_EQ(Markers::HeadFixture::Markers(), 1u) << "S6";
}

TEST_F(Markers, S2_CompleteWithoutTheLeaseIsFenced) {
  Run();
  Complete(node_, launch_, 1, RequestId(2, 2));
  EXPECT_EQ(LastError(node_.session), ErrorCode::kFenced);
  EXPECT_TRUE(LaunchOf(launch_).open());
}

TEST_F(Markers, S3_StaleEpochChangesNothing) {
  Run(2);
  Acquire(node_, launch_, 1, RequestId(1, 1));
  Finish(node_, launch_, 1, 1, wire::Outcome::kFailed);  // rank 1 is lost: the next epoch
  Finish(node_, launch_, 0, 1, wire::Outcome::kCancelled);
  Serve(node_);
  Serve(node_);
  Serve(node_);
  ASSERT_EQ(LaunchOf(launch_).epoch, 2u) << "S8";
  Acquire(node_, launch_, 2, RequestId(1, 2));
  Complete(node_, launch_, 1, RequestId(2, 2));
  EXPECT_EQ(LastError(node_.session), ErrorCode::kFenced);
  EXPECT_TRUE(LaunchOf(launch_).open());
  Finish(node_, launch_, 0, 1, wire::Outcome::kFailed);  // a late report of the old epoch
  EXPECT_TRUE(LaunchOf(launch_).open());
  EXPECT_EQ(Last<wire::RankDoneAck>(node_.session).epoch, 1u);
}

TEST_F(Markers, AcquireIsIdempotentByNonceAndBusyForAnother) {
  Run();
  Acquire(node_, launch_, 1, RequestId(1, 1));
  EXPECT_EQ(Last<wire::DriverGranted>(node_.session).epoch, 1u);
  Acquire(node_, launch_, 1, RequestId(1, 1));
  EXPECT_EQ(Count<wire::DriverGranted>(node_.session), 2u);
  Acquire(node_, launch_, 1, RequestId(3, 3));
  EXPECT_EQ(LastError(node_.session), ErrorCode::kAlreadyExists);
}

TEST_F(Markers, S7_CancelAndSuccessTheFirstInTheLogWins) {
  Run();
  Acquire(node_, launch_, 1, RequestId(1, 1));
  wire::CancelLaunch cancel;
  cancel.launch = launch_;
  cancel.hard = true;
  Say(client_, cancel, 5);
  EXPECT_EQ(Last<wire::LaunchUpdate>(client_).info.state, wire::LaunchState::kStopping);
  EXPECT_EQ(Last<wire::StopRanks>(node_.session).grace_ms, 10000u);
  Complete(node_, launch_, 1, RequestId(2, 2));
  EXPECT_EQ(Last<wire::MarkerReply>(node_.session).marker.outcome, wire::Outcome::kCancelled);
  EXPECT_EQ(Markers::HeadFixture::Markers(), 1u);
}

TEST_F(Markers, SoftCancelLetsTheDriverSucceedWithinItsGrace) {
  Run();
  Acquire(node_, launch_, 1, RequestId(1, 1));
  wire::CancelLaunch cancel;
  cancel.launch = launch_;
  Say(client_, cancel, 5);
  EXPECT_TRUE(LaunchOf(launch_).open());
  Complete(node_, launch_, 1, RequestId(2, 2));
  EXPECT_EQ(LaunchOf(launch_).marker->outcome, wire::Outcome::kSucceeded);
}

TEST_F(Markers, SoftCancelBecomesHardAfterItsGrace) {
  Run();
  Acquire(node_, launch_, 1, RequestId(1, 1));
  wire::CancelLaunch cancel;
  cancel.launch = launch_;
  Say(client_, cancel, 5);
  for (int i = 0; i < 6; ++i) {
    Say(node_.session, wire::Heartbeat());
    Advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(Last<wire::StopRanks>(node_.session).exit_code, 130);
  Finish(node_, launch_, 0, 1, wire::Outcome::kCancelled);
  ASSERT_FALSE(LaunchOf(launch_).open());
  EXPECT_EQ(LaunchOf(launch_).marker->exit_code, 130);
}

TEST_F(Markers, S4_MarkerSurvivesTheHead) {
  Run();
  Acquire(node_, launch_, 1, RequestId(1, 1));
  Complete(node_, launch_, 1, RequestId(2, 2));
  const std::string before = DurableText(core_->state());
  const wire::Marker marker = *LaunchOf(launch_).marker;
  State replayed;
  for (const wire::Event& event : durable_) Apply(replayed, event);
  EXPECT_EQ(DurableText(replayed), before);
  Boot();
  EXPECT_EQ(*LaunchOf(launch_).marker, marker);
  const SessionId late = Open(wire::Role::kClient, Id128{9, 2});
  wire::WaitMarker wait;
  wait.launch = launch_;
  Say(late, wait, 3);
  EXPECT_EQ(Last<wire::MarkerReply>(late).marker, marker);
}

TEST_F(Markers, DriverLeaseEndsTheEpochOfADriverThatStopsRenewing) {
  Run();
  Acquire(node_, launch_, 1, RequestId(1, 1));
  wire::RenewDriver renew;
  renew.launch = launch_;
  renew.epoch = 1;
  SayFor(node_.session, DriverOf(launch_), renew);
  for (int i = 0; i < 6; ++i) {
    Say(node_.session, wire::Heartbeat());
    Advance(std::chrono::seconds(1));
  }
  ASSERT_FALSE(LaunchOf(launch_).open());
  EXPECT_EQ(LaunchOf(launch_).marker->outcome, wire::Outcome::kFailed);
  EXPECT_NE(LaunchOf(launch_).marker->cause.find("lease"), std::string::npos);
  EXPECT_EQ(LaunchOf(launch_).marker->failure.kind, wire::FailureKind::kDriverSilent);
}

TEST_F(Markers, RankDoneTheLastSuccessWritesTheMarker) {
  Run(1, wire::LaunchMode::kDistributed);
  Finish(node_, launch_, 1);
  EXPECT_TRUE(LaunchOf(launch_).open());
  Finish(node_, launch_, 1);  // again: the same answer, no effect
  EXPECT_EQ(Count<wire::RankDoneAck>(node_.session), 2u);
  Finish(node_, launch_, 0);
  EXPECT_EQ(LaunchOf(launch_).marker->outcome, wire::Outcome::kSucceeded);
  wire::GetResult get;
  get.launch = launch_;
  get.rank = 1;
  Say(client_, get, 9);
  EXPECT_EQ(sent_.back().message.attachment, "value");
}

TEST_F(Markers, RankDoneTheFirstFailureWritesFailed) {
  Run(1, wire::LaunchMode::kDistributed);
  Finish(node_, launch_, 1, 1, wire::Outcome::kFailed);
  EXPECT_TRUE(LaunchOf(launch_).open()) << "E3: the other one may say its last word";
  Finish(node_, launch_, 0, 1, wire::Outcome::kCancelled);
  ASSERT_FALSE(LaunchOf(launch_).open());
  EXPECT_EQ(LaunchOf(launch_).marker->outcome, wire::Outcome::kFailed);
  EXPECT_EQ(LaunchOf(launch_).marker->failure.rank, 1);
  EXPECT_NE(LaunchOf(launch_).marker->exit_code, 0);
}

TEST_F(Markers, S4_HowTheOtherRanksEndedIsToldAndChangesNothing) {
  const FakeNode a = Join(1, 4);
  const SessionId client = Open(wire::Role::kClient, Id128{9, 1});
  const LaunchId launch = Submit(client, 3);
  Serve(a);
  Serve(a);
  const auto end = [&](std::uint32_t rank, wire::Outcome outcome, std::int32_t code,
                       std::int32_t signal) {
    wire::RankDone done;
    done.launch = launch;
    done.epoch = 1;
    done.generation = 1;
    done.rank = rank;
    done.outcome = outcome;
    done.failure.exit_code = code;
    done.failure.signal = signal;
    Say(a.session, done);
  };
  end(1, wire::Outcome::kFailed, 0, 9);
  end(0, wire::Outcome::kCancelled, 1, 0);
  // the stop grace of rank 2 passes, and its node does not say what became of it
  for (int i = 0; i < 4; ++i) {
    Say(a.session, wire::Heartbeat());
    Advance(std::chrono::seconds(4));
  }
  ASSERT_FALSE(LaunchOf(launch).open());
  const std::size_t events = durable_.size();
  end(2, wire::Outcome::kCancelled, 0, 15);
  EXPECT_EQ(durable_.size(), events) << "the marker stands";
  EXPECT_EQ(Count<wire::RankDoneAck>(a.session), 3u);
  Say(client, wire::GetLaunch{launch}, 5);
  const auto ranks = Last<wire::LaunchUpdate>(client).info.rank_infos;
  EXPECT_EQ(ranks[0].exit_code, 1);
  EXPECT_EQ(ranks[0].outcome, wire::Outcome::kCancelled);
  EXPECT_EQ(ranks[1].exit_code, 137);
  EXPECT_EQ(ranks[1].outcome, wire::Outcome::kFailed);
  EXPECT_EQ(ranks[2].exit_code, 143);
}

TEST_F(Markers, UnknownLaunchIsNeitherSuccessNorFailure) {
  Run();
  wire::WaitMarker wait;
  wait.launch = LaunchId(66, 6);
  Say(client_, wait, 3);
  EXPECT_EQ(LastError(client_), ErrorCode::kUnknownOutcome);
}

TEST_F(Markers, WaitEndsAtItsDeadlineWithoutAnOutcome) {
  Run();
  wire::WaitMarker wait;
  wait.launch = launch_;
  wait.timeout_ms = 100;
  Say(client_, wait, 3);
  Advance(std::chrono::milliseconds(150));
  EXPECT_EQ(LastError(client_), ErrorCode::kTimeout);
}

}  // namespace
}  // namespace troupe::head
