// Method: a launch of ranks on two nodes is brought to RUNNING; then ranks fail in every order that
// could blame the wrong one, the head is asked to stop, forgets everything but its journal, and
// goes on. Names carry the invariants.
#include "head/core/launched/ending.h"

#include <csignal>

#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class Endings : public HeadFixture {
 protected:
  void Run(std::uint32_t attempts = 1, wire::LaunchMode mode = wire::LaunchMode::kDistributed) {
    a_ = Join(1, 2);
    b_ = Join(2, 2);
    client_ = Open(wire::Role::kClient, Id128{9, 1});
    launch_ = Submit(client_, 4, attempts, mode);
    for (int i = 0; i < 2; ++i) {
      Serve(a_);
      Serve(b_);
    }
    ASSERT_EQ(LaunchOf(launch_).phase, wire::LaunchState::kRunning);
  }
  wire::RankDone DoneOf(std::uint32_t rank, wire::Outcome outcome) {
    wire::RankDone done;
    done.launch = launch_;
    done.epoch = LaunchOf(launch_).epoch;
    done.generation = 1;
    done.rank = rank;
    done.outcome = outcome;
    return done;
  }
  void Where(std::uint32_t rank, const std::string& text) {
    wire::RankWhere where;
    where.launch = launch_;
    where.epoch = LaunchOf(launch_).epoch;
    where.rank = rank;
    where.text = text;
    Say(NodeOf(rank).session, where);
  }
  const FakeNode& NodeOf(std::uint32_t rank) {
    return LaunchOf(launch_).ranks[rank].node == a_.id ? a_ : b_;
  }
  void End(std::uint32_t rank, wire::Outcome outcome = wire::Outcome::kSucceeded) {
    Say(NodeOf(rank).session, DoneOf(rank, outcome));
  }
  void Raise(std::uint32_t rank, const std::string& type, bool symptom = false) {
    wire::RankDone done = DoneOf(rank, wire::Outcome::kFailed);
    done.failure.kind = wire::FailureKind::kRaised;
    done.failure.exception_type = type;
    done.failure.cause = type;
    done.failure.symptom = symptom;
    Say(NodeOf(rank).session, done);
  }
  void Kill(std::uint32_t rank, int signal = SIGKILL) {
    wire::RankDone done = DoneOf(rank, wire::Outcome::kFailed);
    done.failure.signal = signal;
    Say(NodeOf(rank).session, done);
  }
  void Answer(const FakeNode& node) {
    for (const wire::AskRanks& ask : Take<wire::AskRanks>(node.session)) {
      wire::RanksSeen seen;
      seen.launch = ask.launch;
      seen.epoch = ask.epoch;
      seen.question = ask.question;
      Say(node.session, seen);
    }
  }
  void Cancel(std::int32_t grace_ms = -1) {
    wire::CancelLaunch cancel;
    cancel.launch = launch_;
    cancel.hard = true;
    cancel.reason = "enough";
    cancel.grace_ms = grace_ms;
    Say(client_, cancel, ++asked_);
  }
  /// Nodes are heard meanwhile.
  void Pass(std::chrono::seconds time) {
    for (auto i = std::chrono::seconds(0); i < time; ++i) {
      Say(a_.session, wire::Heartbeat());
      Say(b_.session, wire::Heartbeat());
      Advance(std::chrono::seconds(1));
    }
  }
  /// The head is started again, and the nodes come back to it.
  void Restart() {
    Boot();
    sent_.clear();
    for (FakeNode* node : {&a_, &b_}) *node = Join(node->id.lo, 2, 0, WhatIsOn(*node, launch_));
  }
  const wire::Marker& Marker() { return *LaunchOf(launch_).marker; }

  FakeNode a_, b_;
  SessionId client_;
  LaunchId launch_;
  std::uint64_t asked_ = 50;
};

TEST_F(Endings, WhileItStartsItSaysHowManyRanksAreReady) {
  a_ = Join(1, 2);
  b_ = Join(2, 2);
  client_ = Open(wire::Role::kClient, Id128{9, 1});
  launch_ = Submit(client_, 4);
  const auto ready_ranks = [this] {
    Say(client_, wire::GetLaunch{launch_}, 5);
    return Last<wire::LaunchUpdate>(client_).info.ready_ranks;
  };
  EXPECT_EQ(ready_ranks(), 0u);
  Serve(a_);
  Serve(b_);
  ASSERT_EQ(LaunchOf(launch_).phase, wire::LaunchState::kStarting);
  EXPECT_EQ(ready_ranks(), 2u) << "a is still at it";
  Serve(a_);
  ASSERT_EQ(LaunchOf(launch_).phase, wire::LaunchState::kRunning);
  EXPECT_EQ(ready_ranks(), 0u) << "all are, and it runs";
}

TEST_F(Endings, E2_AFailureThatIsNoSymptomClosesTheVerdictAtOnce) {
  Run();
  Raise(1, "builtins.KeyError");
  EXPECT_EQ(Count<wire::AskRanks>(a_.session), 0u);
  EXPECT_EQ(Last<wire::StopRanks>(b_.session).grace_ms, 10000u)
      << "the others may say their last word";
  EXPECT_TRUE(LaunchOf(launch_).open()) << "E3";
  Kill(3);  // later, whatever it is
  End(0, wire::Outcome::kCancelled);
  EXPECT_TRUE(LaunchOf(launch_).open());
  End(2, wire::Outcome::kCancelled);
  EXPECT_EQ(Marker().failure.rank, 1);
}

TEST_F(Endings, E2_ASymptomIsNotTheVerdictWhileANodeHasNotAnswered) {
  Run();
  Raise(0, "builtins.RuntimeError", true);
  EXPECT_EQ(Count<wire::StopRanks>(a_.session), 0u);
  Answer(a_);
  EXPECT_EQ(Count<wire::StopRanks>(a_.session), 0u);
  Kill(2);
  EXPECT_EQ(Count<wire::StopRanks>(a_.session), 1u);
  End(1, wire::Outcome::kCancelled);
  End(3, wire::Outcome::kCancelled);
  EXPECT_EQ(Marker().failure.rank, 2);
  EXPECT_EQ(Marker().exit_code, 128 + SIGKILL);
}

TEST_F(Endings, E2_ASymptomIsTheVerdictWhenAllHaveAnsweredAndNobodyKnowsBetter) {
  Run();
  Raise(0, "builtins.RuntimeError", true);
  Answer(a_);
  Answer(b_);
  EXPECT_EQ(Count<wire::StopRanks>(a_.session), 1u);
  End(1, wire::Outcome::kCancelled);
  End(2, wire::Outcome::kCancelled);
  End(3, wire::Outcome::kCancelled);
  EXPECT_EQ(Marker().failure.rank, 0);
}

TEST_F(Endings, E2_AnEarlyReturnComesBeforeSymptomsAndAfterAllElse) {
  Run();
  End(3);
  Raise(0, "builtins.RuntimeError", true);
  Answer(a_);
  Answer(b_);
  End(1, wire::Outcome::kCancelled);
  End(2, wire::Outcome::kCancelled);
  EXPECT_EQ(Marker().failure.rank, 3);
  EXPECT_EQ(Marker().failure.cause.rfind("returned before rank 0", 0), 0u)
      << Marker().failure.cause;
}

TEST_F(Endings, E2_ALostNodeIsNotWaitedForAndIsTheCause) {
  Run();
  Raise(0, "builtins.RuntimeError", true);
  ASSERT_EQ(NodeOf(0).id, a_.id);
  Answer(a_);
  for (int i = 0; i < 8 && LaunchOf(launch_).open(); ++i) {
    Say(a_.session, wire::Heartbeat());
    Advance(std::chrono::seconds(1));
  }
  End(1, wire::Outcome::kCancelled);
  ASSERT_FALSE(LaunchOf(launch_).open());
  EXPECT_EQ(Marker().failure.rank, 2);
  EXPECT_EQ(Marker().failure.kind, wire::FailureKind::kNodeUnreachable);
}

TEST_F(Endings, E1_NoSuccessAfterTheFailureOfARank) {
  Run();
  Raise(0, "builtins.RuntimeError", true);
  End(1);
  End(2);
  End(3);
  Answer(a_);
  Answer(b_);
  EXPECT_EQ(Marker().outcome, wire::Outcome::kFailed);
}

TEST_F(Endings, E1_ADriversSuccessAfterTheFailureOfARankIsFenced) {
  a_ = Join(1, 2);
  client_ = Open(wire::Role::kClient, Id128{9, 1});
  launch_ = Submit(client_, 2, 1, wire::LaunchMode::kDriver);
  Serve(a_);
  Serve(a_);
  Acquire(a_, launch_, 1, RequestId(1, 1));
  Kill(1);
  EXPECT_TRUE(LaunchOf(launch_).open()) << "the driver may say its last word";
  Complete(a_, launch_, 1, RequestId(2, 2));
  EXPECT_EQ(LastError(a_.session), ErrorCode::kFenced);
  End(0, wire::Outcome::kCancelled);
  EXPECT_EQ(Marker().failure.rank, 1);
}

TEST_F(Endings, E3_TheMarkerIsWrittenWhenTheGraceIsOverAndWithoutAnAnswer) {
  Run();
  Cancel(3000);
  EXPECT_EQ(Last<wire::LaunchUpdate>(client_).info.state, wire::LaunchState::kStopping);
  Pass(std::chrono::seconds(7));
  EXPECT_TRUE(LaunchOf(launch_).open());
  Pass(std::chrono::seconds(2));
  ASSERT_FALSE(LaunchOf(launch_).open());
  EXPECT_EQ(Marker().outcome, wire::Outcome::kCancelled);
  EXPECT_EQ(Marker().cause, "enough");
}

TEST_F(Endings, E3_ASecondCancelTakesTheRestOfTheGraceAway) {
  Run();
  Cancel();
  EXPECT_EQ(Last<wire::StopRanks>(a_.session).grace_ms, 10000u);
  Cancel(0);
  EXPECT_EQ(Last<wire::StopRanks>(a_.session).grace_ms, 0u);
  Cancel();
  EXPECT_EQ(Last<wire::StopRanks>(a_.session).grace_ms, 0u);
}

TEST_F(Endings, E3_AnotherEpochBeginsOnlyAfterTheLastRankHasEnded) {
  Run(2);
  Kill(1);
  End(0, wire::Outcome::kCancelled);
  End(2, wire::Outcome::kCancelled);
  EXPECT_EQ(LaunchOf(launch_).phase, wire::LaunchState::kRunning);
  End(3, wire::Outcome::kCancelled);
  EXPECT_NE(LaunchOf(launch_).phase, wire::LaunchState::kRunning);
  EXPECT_EQ(LaunchOf(launch_).last_failure.rank, 1);
}

TEST_F(Endings, E2_ACancelWithAKnownCauseLeavesTheCauseTheVerdict) {
  Run();
  Kill(1);
  Cancel();
  End(0, wire::Outcome::kCancelled);
  End(2, wire::Outcome::kCancelled);
  End(3, wire::Outcome::kCancelled);
  EXPECT_EQ(Marker().outcome, wire::Outcome::kFailed);
  EXPECT_EQ(Marker().failure.rank, 1);
}

TEST_F(Endings, E2_ACancelClosesAVerdictThatIsOpen) {
  Run();
  Raise(0, "builtins.RuntimeError", true);
  Cancel();
  EXPECT_EQ(Count<wire::StopRanks>(a_.session), 1u);
  for (std::uint32_t rank = 1; rank < 4; ++rank) End(rank, wire::Outcome::kCancelled);
  EXPECT_EQ(Marker().outcome, wire::Outcome::kCancelled);
}

TEST_F(Endings, E4_ARestartedHeadAsksAnew) {
  Run();
  Raise(0, "builtins.RuntimeError", true);
  Restart();
  EXPECT_EQ(Count<wire::AskRanks>(a_.session), 1u);
  EXPECT_EQ(Count<wire::AskRanks>(b_.session), 1u);
  Kill(2);
  Answer(a_);
  Answer(b_);
  End(1, wire::Outcome::kCancelled);
  End(3, wire::Outcome::kCancelled);
  EXPECT_EQ(Marker().failure.rank, 2);
}

TEST_F(Endings, E4_ARestartedHeadTellsToStopAnew) {
  Run();
  Cancel(4000);
  Restart();
  EXPECT_EQ(Last<wire::StopRanks>(a_.session).grace_ms, 4000u);
  EXPECT_EQ(Last<wire::StopRanks>(b_.session).exit_code, 130);
  for (std::uint32_t rank = 0; rank < 4; ++rank) End(rank, wire::Outcome::kCancelled);
  EXPECT_EQ(Marker().outcome, wire::Outcome::kCancelled);
}

TEST_F(Endings, ALaunchThatTimedOutSaysWhereItsRanksWere) {
  timeout_ms_ = 1500;
  Run();
  Pass(std::chrono::seconds(2));
  EXPECT_TRUE(Last<wire::StopRanks>(a_.session).where && Last<wire::StopRanks>(b_.session).where);
  Where(0, "  in a()\n");
  Where(2, "  in b()\n");
  Where(1, "  in a()\n");
  for (std::uint32_t rank = 0; rank < 4; ++rank) End(rank, wire::Outcome::kCancelled);
  EXPECT_EQ(Marker().failure.traceback.rfind(
                "ranks 0, 1:\n  in a()\nrank 2:\n  in b()\nrank 3:\n  it did not say", 0),
            0u)
      << Marker().failure.traceback;
}

TEST_F(Endings, E3_TheMarkerOfATimedOutDriverWaitsTwoSecondsForTheWordsOfItsRanks) {
  timeout_ms_ = 1500;
  Run(1, wire::LaunchMode::kDriver);
  Pass(std::chrono::seconds(2));
  Where(0, "  in drive()\n");
  End(0, wire::Outcome::kCancelled);
  EXPECT_TRUE(LaunchOf(launch_).open());
  Where(1, "  in part()\n");
  Where(2, "  in part()\n");
  EXPECT_TRUE(LaunchOf(launch_).open());
  Pass(std::chrono::seconds(3));
  EXPECT_NE(Marker().failure.traceback.find("ranks 1, 2:\n  in part()\nrank 3:\n  it did not say"),
            std::string::npos);
}

TEST_F(Endings, ACancelledLaunchAsksNobodyWhereItIs) {
  Run();
  Cancel();
  EXPECT_FALSE(Last<wire::StopRanks>(a_.session).where);
}

TEST_F(Endings, HowARankLeftAfterItsResultIsAWarning) {
  Run();
  for (std::uint32_t rank = 0; rank < 4; ++rank) End(rank);
  ASSERT_EQ(Marker().outcome, wire::Outcome::kSucceeded);
  wire::RankLeft left;
  left.launch = launch_;
  left.epoch = 1;
  left.rank = 0;
  left.warning = "was ended by SIGSEGV";
  Say(a_.session, left);
  EXPECT_EQ(Last<wire::LaunchUpdate>(client_).info.rank_infos[0].warning, "was ended by SIGSEGV");
  EXPECT_EQ(Marker().outcome, wire::Outcome::kSucceeded);
}

}  // namespace
}  // namespace troupe::head
