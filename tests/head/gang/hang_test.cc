// Method: a launch of four ranks on two nodes runs with hang_timeout; ranks say that others are
// late, those are asked and answer or not, and what the head makes of it is read. Names carry the
// invariants of head/core/launched/gang/hang.h.
#include "head/core/launched/gang/hang.h"

#include "tests/head/gang/regroup_fixture.h"

namespace troupe::head {
namespace {

class Hangs : public Regroups {
 protected:
  void Begin(wire::RankDeath policy = wire::RankDeath::kFail) {
    hang_ms_ = 15000;
    Run(policy, 1);
  }
  wire::RanksLate Word(std::uint32_t rank, const std::vector<std::uint32_t>& late) {
    wire::RanksLate word;
    word.launch = launch_;
    word.epoch = 1;
    word.group_epoch = 1;
    word.rank = rank;
    word.torch_group = "0";
    word.operation = 7;
    word.op = "all_reduce";
    word.waited_ms = 15100;
    word.waiting = {rank};
    for (const std::uint32_t each : late) {
      wire::LateRank named;
      named.rank = each;
      named.pid = 4711;
      named.where = "  File train.py, line 3";
      word.late.push_back(std::move(named));
    }
    return word;
  }
  void Accuse(std::uint32_t rank, const std::vector<std::uint32_t>& late) {
    Say(NodeOf(rank).session, Word(rank, late));
  }
  wire::RankBegun AnswerOf(std::uint32_t rank) {
    wire::RankBegun answer;
    answer.launch = launch_;
    answer.epoch = 1;
    answer.rank = rank;
    answer.question = LaunchOf(launch_).hang.question;
    return answer;
  }
  void Answer(std::uint32_t rank, std::uint64_t begun, bool waits = false) {
    wire::RankBegun answer = AnswerOf(rank);
    answer.begun = begun;
    answer.waits = waits;
    Say(NodeOf(rank).session, answer);
  }
  void Silent(std::uint32_t rank) {
    wire::RankBegun answer = AnswerOf(rank);
    answer.silent = true;
    Say(NodeOf(rank).session, answer);
  }
  bool Runs(std::uint32_t rank) {
    return LaunchOf(launch_).ranks[rank].done.outcome == wire::Outcome::kNone;
  }
  bool Asked() { return LaunchOf(launch_).hang.question != 0; }
};

TEST_F(Hangs, H2_WhoIsNamedIsAskedAndOneThatHasBegunFewerEnds) {
  Begin();
  Accuse(0, {3});
  const auto ask = Last<wire::AskBegun>(b_.session);
  EXPECT_EQ(ask.rank, 3u);
  EXPECT_EQ(ask.torch_group, "0");
  EXPECT_EQ(ask.limit_ms, 5000u);
  EXPECT_TRUE(Runs(3)) << "nobody's word ends a rank";
  Answer(3, 6);
  const wire::RankDone& done = LaunchOf(launch_).ranks[3].done;
  EXPECT_EQ(done.failure.cause,
            "hung: it has kept rank 0 waiting for 15.1 s in operation 7 (all_reduce) of process "
            "group 0, over hang_timeout=15 s; it has begun 6 operations");
  EXPECT_EQ(done.failure.kind, wire::FailureKind::kHung);
  EXPECT_EQ(done.failure.signal, SIGKILL);
  EXPECT_EQ(done.failure.pid, 4711);
  EXPECT_EQ(done.failure.traceback, "  File train.py, line 3");
  EXPECT_EQ(Last<wire::StopRanks>(a_.session).reason, done.failure.cause);
}

TEST_F(Hangs, H2_WhoHasComeMeanwhileLives) {
  Begin();
  Accuse(0, {3});
  Answer(3, 7);
  EXPECT_TRUE(Runs(3));
  EXPECT_FALSE(Asked()) << "who still waits may say so again";
  Accuse(0, {3});
  Answer(3, 6, true);
  EXPECT_TRUE(Runs(3)) << "it waits for somebody itself";
}

TEST_F(Hangs, H3_WhoSaysNothingIsHeldToBeStopped) {
  Begin(wire::RankDeath::kShrink);
  Accuse(0, {2});
  Silent(2);
  EXPECT_NE(LaunchOf(launch_).ranks[2].done.failure.cause.find("it says nothing: it is stopped"),
            std::string::npos);
  EXPECT_EQ(RanksOf(Last<wire::PeersLost>(b_.session)), (std::vector<std::uint32_t>{2}))
      << "its worker kills it";
}

TEST_F(Hangs, H3_ANodeThatIsAwaySaysNothingOfItsRanks) {
  Begin();
  Accuse(0, {3});
  Pass(std::chrono::seconds(11));
  EXPECT_TRUE(Runs(3));
  EXPECT_FALSE(Asked());
}

TEST_F(Hangs, H4_OfThoseThatSpeakTheOnesThatHaveBegunTheFewest) {
  Begin(wire::RankDeath::kShrink);
  Accuse(0, {1, 2, 3});
  Answer(1, 5);
  Answer(2, 4);
  Answer(3, 4);
  EXPECT_TRUE(Runs(1));
  EXPECT_FALSE(Runs(2));
  EXPECT_FALSE(Runs(3));
}

TEST_F(Hangs, H4_WhoSaysNothingIsBeforeThem) {
  Begin(wire::RankDeath::kShrink);
  Accuse(0, {1, 2});
  Answer(1, 1);
  Silent(2);
  EXPECT_TRUE(Runs(1)) << "it may wait for the other";
  EXPECT_FALSE(Runs(2));
}

TEST_F(Hangs, H1_WhoMayNotSayIt) {
  Begin();
  Say(b_.session, Word(0, {3}));
  EXPECT_FALSE(Asked()) << "a node speaks for the ranks that it has";
  wire::RanksLate word = Word(0, {3});
  word.group_epoch = 2;
  Say(a_.session, word);
  word = Word(0, {3});
  word.epoch = 2;
  Say(a_.session, word);
  word = Word(0, {0, 4, 77});
  Say(a_.session, word);
  word = Word(0, {3});
  word.waited_ms = 14000;
  Say(a_.session, word);
  EXPECT_FALSE(Asked());
  Return(0);
  Accuse(0, {3});
  EXPECT_FALSE(Asked()) << "it does not run any more";
  Return(3);
  Accuse(1, {3});
  EXPECT_FALSE(Asked()) << "nor that one";
}

TEST_F(Hangs, H1_WithoutHangTimeoutNobodyIsAsked) {
  Run(wire::RankDeath::kFail, 1);
  Accuse(0, {3});
  EXPECT_FALSE(Asked());
}

TEST_F(Hangs, H1_RanksAreNamedAsInTheGroup) {
  Begin(wire::RankDeath::kShrink);
  Kill(1);
  Come(a_, 2, {0});
  Come(b_, 2, {2, 3});
  wire::RanksLate word = Word(0, {1});
  word.group_epoch = 2;
  Say(a_.session, word);
  EXPECT_EQ(Last<wire::AskBegun>(b_.session).rank, 2u) << "the second of 0, 2 and 3";
}

TEST_F(Hangs, H5_OneQuestionAtATimeAndNoneWhileReforming) {
  Begin(wire::RankDeath::kShrink);
  Accuse(0, {3});
  const std::uint64_t question = LaunchOf(launch_).hang.question;
  Accuse(1, {2});
  EXPECT_EQ(LaunchOf(launch_).hang.question, question);
  Kill(2);
  Silent(3);
  EXPECT_TRUE(Runs(3)) << "that group is over";
  Accuse(0, {3});
  EXPECT_FALSE(Asked());
}

TEST_F(Hangs, H5_AWordOfAnEarlierQuestionIsNone) {
  Begin();
  Accuse(0, {3});
  wire::RankBegun late = AnswerOf(3);
  late.silent = true;
  Answer(3, 7);
  Accuse(0, {3});
  Say(b_.session, late);
  EXPECT_TRUE(Runs(3));
  EXPECT_TRUE(Asked());
}

}  // namespace
}  // namespace troupe::head
