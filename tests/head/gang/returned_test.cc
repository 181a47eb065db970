// Method: a launch of four ranks on two nodes runs; ranks return, others say that they wait for
// them, those are asked and answer, and what the head makes of it is read. Names carry the
// invariants of head/core/launched/gang/returned.h.
#include "head/core/launched/gang/returned.h"

#include "tests/head/gang/regroup_fixture.h"

namespace troupe::head {
namespace {

class ReturnedRanks : public Regroups {
 protected:
  void Begin(wire::RankDeath policy = wire::RankDeath::kFail) { Run(policy, 1); }
  wire::RankAwaits Word(std::uint32_t rank, const std::vector<std::uint32_t>& awaited) {
    wire::RankAwaits word;
    word.launch = launch_;
    word.epoch = 1;
    word.group_epoch = 1;
    word.rank = rank;
    word.torch_group = "0";
    word.key = "1048576 gloo";
    word.operation = 4;
    word.op = "all_reduce";
    word.awaited = awaited;
    word.where = "  File train.py, line 3";
    return word;
  }
  void Await(std::uint32_t rank, const std::vector<std::uint32_t>& awaited) {
    Say(NodeOf(rank).session, Word(rank, awaited));
  }
  void Answer(std::uint32_t rank, std::uint64_t begun, bool more = false, bool silent = false) {
    wire::RankBegun answer;
    answer.launch = launch_;
    answer.epoch = 1;
    answer.rank = rank;
    answer.question = LaunchOf(launch_).returned.question;
    answer.begun = begun;
    answer.waits = more;
    answer.silent = silent;
    Say(NodeOf(rank).session, answer);
  }
  bool Asked() { return LaunchOf(launch_).returned.question != 0; }
  bool Failed() { return LaunchOf(launch_).ending.closed; }
  std::string Cause() { return LaunchOf(launch_).ending.verdict.cause; }
};

TEST_F(ReturnedRanks, A1_TheOthersAreToldOfThoseOfASecondTogether) {
  Begin();
  Return(1);
  EXPECT_EQ(Count<wire::PeersReturned>(b_.session), 0u);
  Return(3);
  Pass(std::chrono::seconds(2));
  EXPECT_EQ(Count<wire::PeersReturned>(a_.session), 1u);
  EXPECT_EQ(Count<wire::PeersReturned>(b_.session), 1u);
  EXPECT_EQ(Last<wire::PeersReturned>(b_.session).ranks, (std::vector<std::uint32_t>{1, 3}));
  Restart();
  EXPECT_EQ(Last<wire::PeersReturned>(b_.session).ranks, (std::vector<std::uint32_t>{1, 3}))
      << "whose head is a new one";
}

TEST_F(ReturnedRanks, A4_OneThatHasBegunFewerFailsTheLaunchAndWhoWaitsIsNamed) {
  Begin();
  Return(1);
  Await(0, {1});
  EXPECT_EQ(Last<wire::AskBegun>(a_.session).rank, 1u);
  EXPECT_EQ(Last<wire::AskBegun>(a_.session).key, "1048576 gloo");
  Answer(1, 3);
  EXPECT_FALSE(Failed()) << "others that wait may still say so";
  Await(2, {1});
  Pass(std::chrono::seconds(2));
  EXPECT_TRUE(Failed());
  EXPECT_EQ(LaunchOf(launch_).ending.verdict.kind, wire::FailureKind::kReturnedEarly);
  EXPECT_EQ(Cause(),
            "returned after 3 operations; ranks 0, 2 wait for it in operation 4 (all_reduce) of "
            "process group 0");
  EXPECT_EQ(LaunchOf(launch_).ending.verdict.rank, 1);
  EXPECT_EQ(LaunchOf(launch_).ending.verdict.traceback,
            "rank 0 waits here:\n  File train.py, line 3");
}

TEST_F(ReturnedRanks, A3_WhatHasBegunAsManyOrMayBeginMoreIsWaitedFor) {
  Begin();
  Return(1);
  Await(0, {1});
  Answer(1, 4);
  EXPECT_FALSE(Asked()) << "who still waits says so again";
  Await(0, {1});
  Answer(1, 3, true);
  Await(0, {1});
  Answer(1, 0, false, true);
  Await(0, {1});
  Pass(std::chrono::seconds(10));
  EXPECT_FALSE(Asked()) << "its worker says nothing";
  EXPECT_FALSE(Failed());
}

TEST_F(ReturnedRanks, A2_WhoMayNotSayIt) {
  Begin();
  Await(0, {1});
  EXPECT_FALSE(Asked()) << "it runs";
  Return(1);
  Say(b_.session, Word(0, {1}));
  EXPECT_FALSE(Asked()) << "a node speaks for the ranks that it has";
  wire::RankAwaits word = Word(0, {1});
  word.group_epoch = 2;
  Say(a_.session, word);
  word = Word(0, {1});
  word.key = std::string(300, 'x');
  Say(a_.session, word);
  Await(1, {1});
  Await(0, {7});
  EXPECT_FALSE(Asked());
}

TEST_F(ReturnedRanks, A4_AReceiveFromWhicheverSendsCountsAllTogether) {
  Begin();
  for (const std::uint32_t rank : {1u, 2u, 3u}) Return(rank);
  wire::RankAwaits word = Word(0, {1, 2, 3});
  word.kind = wire::GroupWait::kReceiveAny;
  for (const std::uint64_t of_three : {2u, 1u}) {
    Say(a_.session, word);
    Answer(1, 1);
    Answer(2, 1);
    Answer(3, of_three);
    Pass(std::chrono::seconds(2));
    EXPECT_EQ(Failed(), of_three == 1);
  }
}

TEST_F(ReturnedRanks, A5_AWordOfAnotherOperationIsForgotten) {
  Begin();
  Return(1);
  Await(0, {1});
  wire::RankAwaits word = Word(2, {1});
  word.operation = 9;
  Say(b_.session, word);
  Answer(1, 3);
  Pass(std::chrono::seconds(2));
  EXPECT_NE(Cause().find("; rank 0 waits for it"), std::string::npos) << Cause();
}

TEST_F(ReturnedRanks, A5_OneThatHasReturnedMeanwhileIsNotNamed) {
  Begin();
  Return(1);
  Await(0, {1});
  Return(0);
  Answer(1, 3);
  Pass(std::chrono::seconds(2));
  EXPECT_FALSE(Failed());
}

}  // namespace
}  // namespace troupe::head
