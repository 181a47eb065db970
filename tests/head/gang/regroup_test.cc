// Method: a launch of four ranks on two nodes is brought to RUNNING; ranks die and come to the
// re-form in every order, the head forgets all but its journal and goes on. Names carry the
// invariants of head/core/launched/gang/regroup.h.
#include "head/core/machine/verdict.h"
#include "tests/head/gang/regroup_fixture.h"

namespace troupe::head {
namespace {

TEST_F(Regroups, R1_ADeathIsNoFailureWhileEnoughAreLeft) {
  Run();
  Kill(3);
  ASSERT_TRUE(Open());
  EXPECT_EQ(Count<wire::StopRanks>(a_.session) + Count<wire::StopRanks>(b_.session), 0u);
  const auto told = Last<wire::PeersLost>(a_.session);
  EXPECT_EQ(told.group_epoch, 2u);
  EXPECT_EQ(RanksOf(told), (std::vector<std::uint32_t>{3}));
  EXPECT_EQ(told.lost[0].cause, "rank 3 was killed by SIGKILL");
  EXPECT_TRUE(told.hosts_store) << "the first node that has ranks";
  EXPECT_FALSE(Last<wire::PeersLost>(b_.session).hosts_store);
  EXPECT_EQ(LaunchOf(launch_).epoch, 1u) << "R2: the launch's does not rise";
}

TEST_F(Regroups, R1_ByDefaultItIsOne) {
  Run(wire::RankDeath::kFail);
  Kill(3);
  EXPECT_EQ(Count<wire::PeersLost>(a_.session), 0u);
  EXPECT_EQ(Last<wire::StopRanks>(a_.session).outcome, wire::Outcome::kFailed);
}

TEST_F(Regroups, R1_TooFewLeftIsAFailureThatSaysSo) {
  Run(wire::RankDeath::kShrink, 3);
  Kill(3);
  Come(a_, 2, {0, 1});
  Come(b_, 2, {2});
  Kill(2);
  for (std::uint32_t rank : {0u, 1u}) Say(a_.session, DoneOf(rank, wire::Outcome::kCancelled));
  ASSERT_FALSE(Open());
  EXPECT_EQ(Marker().outcome, wire::Outcome::kFailed);
  EXPECT_EQ(Marker().failure.rank, 2) << "the death that was one too many";
  EXPECT_EQ(Marker().failure.cause,
            "rank 2 was killed by SIGKILL; of 4 ranks 2 are left, and min_processes is 3; died "
            "too: rank 3 (SIGKILL on node-b)");
}

TEST_F(Regroups, R1_WhyEachRankIsNotThereIsSaidOnceForThoseThatDiedAlike) {
  Run(wire::RankDeath::kShrink, 1);
  Pass(std::chrono::seconds(20), false);
  ASSERT_TRUE(Open());
  for (std::uint32_t rank : {0u, 1u}) {
    wire::RankDone killed = DoneOf(rank, wire::Outcome::kFailed);
    killed.failure.pid = 7;
    killed.failure.signal = SIGKILL;
    killed.failure.kind = wire::FailureKind::kOutOfMemory;
    killed.failure.cause = "rank " + std::to_string(rank) + " on node-a, pid 7, ended: SIGKILL";
    Say(a_.session, killed);
  }
  ASSERT_FALSE(Open());
  EXPECT_EQ(Marker().failure.cause,
            "node node-b is lost: not heard of for 5000 ms; of 4 ranks 0 are left, and "
            "min_processes is 1; died too: ranks 0, 1 (SIGKILL, out of memory on node-a), rank 3 "
            "(node node-b is lost: not heard of for 5000 ms)");
}

TEST_F(Regroups, R1_WhatCodeRaisesIsAFailure) {
  Run();
  Kill(3);
  Come(a_, 2, {0, 1});
  Come(b_, 2, {2});
  Raise(1, "builtins.KeyError");
  EXPECT_EQ(Last<wire::StopRanks>(a_.session).reason, "builtins.KeyError")
      << "not the death that they outlived";
}

TEST_F(Regroups, R1_ACollectiveThatNobodyCatchesIsBlamedOnTheDeath) {
  Run();
  Kill(3);
  Raise(1, "builtins.RuntimeError", true);
  EXPECT_EQ(Last<wire::StopRanks>(a_.session).reason, "rank 3 was killed by SIGKILL");
}

TEST_F(Regroups, R1_ADeathWhileTheLaunchStartsIsAFailure) {
  a_ = Join(1, 2);
  b_ = Join(2, 2);
  client_ = Open(wire::Role::kClient, Id128{9, 1});
  Say(client_, Wanted(wire::RankDeath::kShrink, 1, 1), 70);
  launch_ = Last<wire::LaunchAccepted>(client_).launch;
  Serve(a_);
  Serve(b_);
  ASSERT_EQ(LaunchOf(launch_).phase, wire::LaunchState::kStarting);
  Kill(0);
  EXPECT_EQ(Count<wire::PeersLost>(b_.session), 0u);
  EXPECT_NE(LaunchOf(launch_).ending.step, Ending::Step::kNo);
}

TEST_F(Regroups, R3_AGroupIsFormedOnceAllThatRunHaveCome) {
  Run();
  Kill(1);
  Come(a_, 2, {0});
  EXPECT_EQ(Count<wire::FormGroup>(a_.session), 0u) << "2 and 3 have not come";
  Come(b_, 2, {2, 3});
  const auto a = Last<wire::FormGroup>(a_.session);
  const auto b = Last<wire::FormGroup>(b_.session);
  EXPECT_EQ(a.world_size, 3u);
  EXPECT_EQ(b.world_size, 3u);
  EXPECT_EQ(a.store_host, "10.0.0.1");
  EXPECT_EQ(b.store_port, 4002u) << "where the first node's store is";
  ASSERT_EQ(b.places.size(), 2u);
  EXPECT_EQ(b.places[0].rank, 2u);
  EXPECT_EQ(b.places[0].group_rank, 1u) << "dense, in the old order";
  EXPECT_EQ(b.places[1].group_rank, 2u);
}

TEST_F(Regroups, R3_OneMessagePerNodeAndStep) {
  Run();
  Kill(1);
  Come(a_, 2, {0});
  Come(b_, 2, {2, 3});
  for (const FakeNode& node : {a_, b_}) {
    EXPECT_EQ(Count<wire::PeersLost>(node.session), 1u);
    EXPECT_EQ(Count<wire::FormGroup>(node.session), 1u);
  }
}

TEST_F(Regroups, R3_WhoReturnsMeanwhileIsNotWaitedFor) {
  Run();
  Kill(1);
  Come(b_, 2, {2, 3});
  EXPECT_FALSE(Last<wire::PeersLost>(b_.session).hosts_store);
  Return(0);
  EXPECT_EQ(Count<wire::FormGroup>(b_.session), 0u) << "the store was to be on the other node";
  EXPECT_TRUE(Last<wire::PeersLost>(b_.session).hosts_store);
  Come(b_, 2, {2, 3});
  const auto formed = Last<wire::FormGroup>(b_.session);
  EXPECT_EQ(formed.world_size, 2u);
  EXPECT_EQ(formed.store_host, "10.0.0.2");
  EXPECT_EQ(Count<wire::FormGroup>(a_.session), 0u);
}

TEST_F(Regroups, R2_ASecondDeathWhileReformingIsTheNextEpoch) {
  Run();
  Kill(3);
  Come(a_, 2, {0, 1});
  Kill(2);
  EXPECT_EQ(Count<wire::FormGroup>(a_.session), 0u) << "those two came to epoch 2, which is over";
  EXPECT_EQ(Last<wire::PeersLost>(a_.session).group_epoch, 3u);
  EXPECT_EQ(RanksOf(Last<wire::PeersLost>(a_.session)), (std::vector<std::uint32_t>{2, 3}));
  Come(a_, 2, {0, 1});
  EXPECT_EQ(Count<wire::FormGroup>(a_.session), 0u) << "a late word is answered by the present one";
  EXPECT_EQ(Count<wire::PeersLost>(a_.session), 3u);
  Come(a_, 3, {0, 1});
  EXPECT_EQ(Last<wire::FormGroup>(a_.session).world_size, 2u);
}

TEST_F(Regroups, R4_WhoDoesNotComeIsADeath) {
  Run();
  Kill(3);
  Come(a_, 2, {0, 1});
  Pass(std::chrono::seconds(301));
  const wire::RankDone& late = LaunchOf(launch_).ranks[2].done;
  EXPECT_EQ(late.outcome, wire::Outcome::kFailed);
  EXPECT_NE(late.failure.cause.find("within 300 s of another rank's death"), std::string::npos)
      << late.failure.cause;
  ASSERT_TRUE(Open());
  EXPECT_EQ(Last<wire::PeersLost>(a_.session).group_epoch, 3u);
  Come(a_, 3, {0, 1});
  EXPECT_EQ(Last<wire::FormGroup>(a_.session).world_size, 2u);
}

TEST_F(Regroups, R5_SuccessWhenAllHaveReturnedOrDied) {
  Run();
  Return(0);
  Return(1);
  Kill(3);
  ASSERT_TRUE(Open());
  Return(2);
  ASSERT_FALSE(Open());
  EXPECT_EQ(Marker().outcome, wire::Outcome::kSucceeded);
  Say(client_, wire::GetResult{launch_, 3}, 90);
  EXPECT_EQ(Last<wire::ResultValue>(client_).outcome, wire::Outcome::kFailed);
}

TEST_F(Regroups, R5_TheLastOneMayDieToo) {
  Run();
  for (std::uint32_t rank : {0u, 1u, 2u}) Return(rank);
  Kill(3);
  ASSERT_FALSE(Open());
  EXPECT_EQ(Marker().outcome, wire::Outcome::kSucceeded);
}

TEST_F(Regroups, R1_ALostNodeIsDeathsOfItsRanks) {
  Run();
  Pass(std::chrono::seconds(20), false);
  ASSERT_TRUE(Open());
  EXPECT_EQ(LaunchOf(launch_).ranks[2].done.failure.kind, wire::FailureKind::kNodeUnreachable);
  const auto told = Last<wire::PeersLost>(a_.session);
  EXPECT_EQ(RanksOf(told), (std::vector<std::uint32_t>{2, 3}));
  Come(a_, told.group_epoch, {0, 1});
  EXPECT_EQ(Last<wire::FormGroup>(a_.session).world_size, 2u);
  Back(b_);
  EXPECT_EQ(Last<wire::EndEpoch>(b_.session).launch, launch_) << "what still runs there ends";
}

TEST_F(Regroups, R2_AHeadThatWasStartedAgainGoesOnFromTheJournal) {
  Run();
  Kill(3);
  Come(a_, 2, {0, 1});
  Restart();
  EXPECT_EQ(Last<wire::PeersLost>(a_.session).group_epoch, 2u);
  Come(a_, 2, {0, 1});
  Come(b_, 2, {2});
  ASSERT_EQ(Last<wire::FormGroup>(b_.session).world_size, 3u);
  Restart();
  EXPECT_EQ(Count<wire::PeersLost>(a_.session), 0u) << "that epoch is formed";
  EXPECT_EQ(Last<wire::FormGroup>(b_.session).places[0].group_rank, 2u)
      << "who did not hear it hears it again";
  Kill(2);
  EXPECT_EQ(Last<wire::PeersLost>(a_.session).group_epoch, 3u);
}

TEST_F(Regroups, R2_TheDeadRanksOfAnAttemptAreNotTheNextOnes) {
  Run(wire::RankDeath::kShrink, 4, 2);
  Kill(3);
  for (std::uint32_t rank : {0u, 1u}) Say(a_.session, DoneOf(rank, wire::Outcome::kCancelled));
  Say(b_.session, DoneOf(2, wire::Outcome::kCancelled));
  for (int i = 0; i < 3; ++i) {
    Serve(a_);
    Serve(b_);
  }
  ASSERT_EQ(LaunchOf(launch_).epoch, 2u) << "below the minimum: the whole gang again";
  EXPECT_EQ(GroupEpochOf(LaunchOf(launch_)), 1u);
}

TEST_F(Regroups, WhatMakesNoSenseIsRefused) {
  client_ = Open(wire::Role::kClient, Id128{9, 1});
  a_ = Join(1, 8);
  wire::SubmitLaunch submit = Wanted(wire::RankDeath::kShrink, 5, 1);
  Say(client_, submit, 70);
  EXPECT_EQ(Last<wire::ErrorReply>(client_).text, "min_processes=5 of a launch of 4 ranks");
  submit = Wanted(wire::RankDeath::kShrink, 1, 1);
  submit.spec.mode = wire::LaunchMode::kDriver;
  Say(client_, submit, 71);
  EXPECT_NE(Last<wire::ErrorReply>(client_).text.find("on_rank_death is for launches"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe::head
