// Method: a launch of four ranks on two nodes; ranks and nodes die, other processes take their
// places, or cannot; the head forgets all but its journal and goes on. Names carry the invariants
// of head/core/launched/gang/replace.h.
#include "head/core/launched/gang/replace.h"

#include "head/core/machine/verdict.h"
#include "tests/head/gang/regroup_fixture.h"

namespace troupe::head {
namespace {

class Replaces : public Regroups {
 protected:
  void Begin(std::uint32_t least = 1, std::uint32_t attempts = 1) {
    Run(wire::RankDeath::kReplace, least, attempts);
  }
  std::vector<std::uint32_t> Ordered(const FakeNode& node) {
    std::vector<std::uint32_t> ranks;
    for (const wire::NewRank& each : Last<wire::ReplaceRanks>(node.session).ranks)
      ranks.push_back(each.rank);
    return ranks;
  }
  /// The node of ranks 2 and 3 is lost, with what it said last.
  void LoseB() { Pass(std::chrono::seconds(20), false); }
};

TEST_F(Replaces, RP1_ItsLifeIsToldFromTheFormerOne) {
  Begin(3);
  Kill(3);
  const auto order = Last<wire::ReplaceRanks>(b_.session);
  ASSERT_EQ(order.ranks.size(), 1u);
  EXPECT_EQ(order.ranks[0].rank, 3u);
  EXPECT_EQ(order.ranks[0].life, 2u);
  EXPECT_TRUE(Last<wire::PeersLost>(a_.session).lost.empty()) << "it is replaced";
  ASSERT_EQ(Last<wire::PeersLost>(a_.session).replaced.size(), 1u);
  EXPECT_EQ(Last<wire::PeersLost>(a_.session).replaced[0].cause, "rank 3 was killed by SIGKILL");
  wire::RankDone late = DoneOf(3, wire::Outcome::kFailed);
  late.life = 0;
  Say(b_.session, late);
  EXPECT_EQ(LaunchOf(launch_).ranks[3].done.outcome, wire::Outcome::kNone)
      << "a repeat of what the former process ended with";
  Come(a_, 2, {0, 1});
  Come(b_, 2, {2, 3});
  EXPECT_EQ(Last<wire::FormGroup>(b_.session).world_size, 4u);
}

TEST_F(Replaces, RP2_NoGroupIsFormedWithoutTheReplacement) {
  Begin();
  Kill(3);
  Come(a_, 2, {0, 1});
  Come(b_, 2, {2});
  EXPECT_EQ(Count<wire::FormGroup>(a_.session), 0u);
  Come(b_, 2, {2, 3});
  const auto formed = Last<wire::FormGroup>(b_.session);
  EXPECT_EQ(formed.world_size, 4u);
  ASSERT_EQ(formed.places.size(), 2u);
  EXPECT_EQ(formed.places[1].rank, 3u);
  EXPECT_EQ(formed.places[1].group_rank, 3u) << "ranks keep their numbers";
}

TEST_F(Replaces, RP2_TwoDeathsAtOnceAndOneWhileReforming) {
  Begin();
  Kill(1);
  Kill(3);
  EXPECT_EQ(Ordered(a_), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(Ordered(b_), (std::vector<std::uint32_t>{3}));
  Come(a_, 3, {0, 1});
  Kill(2);
  EXPECT_EQ(Count<wire::FormGroup>(a_.session), 0u);
  EXPECT_EQ(Ordered(b_), (std::vector<std::uint32_t>{2, 3})) << "3 has not come to any group yet";
  Come(a_, 4, {0, 1});
  Come(b_, 4, {2, 3});
  EXPECT_EQ(Last<wire::FormGroup>(a_.session).world_size, 4u);
  EXPECT_EQ(Last<wire::FormGroup>(a_.session).group_epoch, 4u);
}

TEST_F(Replaces, RP2_TheOthersReturnMeanwhileAndTheReplacementIsAlone) {
  Begin();
  for (std::uint32_t rank : {0u, 1u, 2u}) Return(rank);
  Kill(3);
  ASSERT_TRUE(Open()) << "its place is filled before the launch has succeeded";
  EXPECT_TRUE(Last<wire::PeersLost>(b_.session).hosts_store);
  Come(b_, 2, {3});
  EXPECT_EQ(Last<wire::FormGroup>(b_.session).world_size, 1u);
  Return(3);
  ASSERT_FALSE(Open());
  EXPECT_EQ(Marker().outcome, wire::Outcome::kSucceeded);
}

TEST_F(Replaces, R1_ACollectiveThatNobodyCatchesIsBlamedOnTheDeath) {
  Begin();
  Kill(3);
  Restart();
  EXPECT_EQ(Last<wire::PeersLost>(a_.session).replaced.size(), 1u);
  Raise(1, "builtins.RuntimeError", true);
  EXPECT_EQ(Last<wire::StopRanks>(a_.session).reason, "rank 3 was killed by SIGKILL");
}

TEST_F(Replaces, R1_ADeathThatAGroupHasOutlivedIsBlamedForNothing) {
  Begin();
  Kill(3);
  Come(a_, 2, {0, 1});
  Come(b_, 2, {2, 3});
  Raise(1, "builtins.RuntimeError", true);
  for (const FakeNode& node : {a_, b_}) {
    wire::RanksSeen seen;
    seen.launch = launch_;
    seen.epoch = 1;
    seen.question = Last<wire::AskRanks>(node.session).question;
    Say(node.session, seen);
  }
  EXPECT_EQ(Last<wire::StopRanks>(a_.session).reason, "builtins.RuntimeError");
}

TEST_F(Replaces, RP3_ACrashLoopIsTheFailureOfTheLaunch) {
  Begin();
  Kill(3);
  for (int i = 0; i < 2; ++i) {
    Kill(3);
    ASSERT_EQ(LaunchOf(launch_).ending.step, Ending::Step::kNo) << i;
  }
  Kill(3);
  EXPECT_EQ(
      Last<wire::StopRanks>(a_.session).reason,
      "rank 3 was killed by SIGKILL; it is the 3rd process in a row in this rank's place that "
      "died before it was in a group");
}

TEST_F(Replaces, RP3_WhoWasInAGroupIsNoCrashLoopButThereIsALimit) {
  Begin();
  for (std::uint64_t epoch = 2; epoch < 2 + kReplacementsMax; ++epoch) {
    Kill(3);
    Come(a_, epoch, {0, 1});
    Come(b_, epoch, {2, 3});
    ASSERT_EQ(Last<wire::FormGroup>(a_.session).group_epoch, epoch);
  }
  Kill(3);
  EXPECT_EQ(
      Last<wire::StopRanks>(a_.session).reason,
      "rank 3 was killed by SIGKILL; 16 processes have taken this rank's place before, and no "
      "more do");
}

TEST_F(Replaces, RP3_TheJournalCountsThem) {
  Begin();
  Kill(3);
  Kill(3);
  Restart();
  Kill(3);
  ASSERT_EQ(LaunchOf(launch_).ending.step, Ending::Step::kNo);
  Restart();
  Kill(3);
  EXPECT_NE(LaunchOf(launch_).ending.step, Ending::Step::kNo);
}

TEST_F(Replaces, BelowTheMinimumTheLaunchFails) {
  Begin(3);
  LoseB();
  EXPECT_NE(Last<wire::StopRanks>(a_.session)
                .reason.find("of 4 ranks 2 are left, and min_processes "
                             "is 3"),
            std::string::npos);
}

TEST_F(Replaces, RP4_OfALostNodeTheyComeToAnotherOne) {
  Begin();
  FakeNode c = Join(3, 4);
  for (auto i = 0; i < 20; ++i) {
    Say(a_.session, wire::Heartbeat());
    Say(c.session, wire::Heartbeat());
    Advance(std::chrono::seconds(1));
  }
  const auto reserve = Last<wire::Reserve>(c.session);
  EXPECT_EQ(reserve.bundles.size(), 2u) << "one for each rank";
  Come(a_, Last<wire::PeersLost>(a_.session).group_epoch, {0, 1});
  EXPECT_EQ(Count<wire::FormGroup>(a_.session), 0u);
  wire::ReserveReply yes;
  yes.group = reserve.group;
  yes.attempt = reserve.attempt;
  yes.granted = true;
  Say(c.session, yes);
  const auto start = Last<wire::StartRanks>(c.session);
  EXPECT_EQ(start.group, reserve.group);
  EXPECT_EQ(start.node_rank, 2u);
  EXPECT_FALSE(start.hosts_store);
  ASSERT_EQ(start.ranks.size(), 2u);
  EXPECT_EQ(start.ranks[0].rank, 2u);
  EXPECT_EQ(start.ranks[0].life, 3u);
  EXPECT_EQ(start.ranks[1].local_rank, 1u);
  Serve(c);  // RanksReady
  EXPECT_EQ(Last<wire::PublishRoster>(c.session).launch, launch_);
  EXPECT_EQ(Last<wire::PeersLost>(c.session).group_epoch, 3u);
  Come(c, 3, {2, 3});
  EXPECT_EQ(Last<wire::FormGroup>(c.session).world_size, 4u);
  EXPECT_EQ(Last<wire::FormGroup>(a_.session).world_size, 4u);
  wire::RankDone killed = DoneOf(2, wire::Outcome::kFailed);
  killed.failure.signal = SIGKILL;
  Say(c.session, killed);
  EXPECT_EQ(Last<wire::ReplaceRanks>(c.session).ranks[0].group, reserve.group);
  Come(a_, 4, {0, 1});
  Come(c, 4, {2, 3});
  for (std::uint32_t rank : {0u, 1u}) Return(rank);
  for (std::uint32_t rank : {2u, 3u}) Say(c.session, DoneOf(rank, wire::Outcome::kSucceeded));
  ASSERT_FALSE(Open());
  EXPECT_EQ(Last<wire::Release>(c.session).group, reserve.group) << "it ends with the attempt";
}

TEST_F(Replaces, RP4_TheyComeToANodeThatHasOthersOfTheLaunch) {
  a_ = Join(1, 8);
  b_ = Join(2, 2);
  client_ = Open(wire::Role::kClient, Id128{9, 1});
  wire::SubmitLaunch submit = Wanted(wire::RankDeath::kReplace, 1, 1);
  submit.spec.strategy = wire::Strategy::kSpread;
  Say(client_, submit, 70);
  launch_ = Last<wire::LaunchAccepted>(client_).launch;
  for (int i = 0; i < 2; ++i) {
    Serve(a_);
    Serve(b_);
  }
  ASSERT_EQ(LaunchOf(launch_).phase, wire::LaunchState::kRunning);
  std::vector<std::uint32_t> lost, left;
  for (std::uint32_t r = 0; r < 4; ++r)
    (LaunchOf(launch_).ranks[r].node == b_.id ? lost : left).push_back(r);
  LoseB();
  Serve(a_);
  const auto order = Last<wire::ReplaceRanks>(a_.session);
  ASSERT_EQ(order.ranks.size(), lost.size());
  EXPECT_EQ(order.ranks[0].rank, lost[0]);
  EXPECT_EQ(order.ranks[0].local_rank, left.size()) << "beside those that are there";
  EXPECT_FALSE(order.ranks[0].group.IsNil());
  EXPECT_EQ(Count<wire::StartRanks>(a_.session), 0u);
}

TEST_F(Replaces, RP4_WithoutRoomTheLaunchFailsAndSaysWhatWasMissing) {
  Begin();
  LoseB();
  ASSERT_TRUE(Open());
  Come(a_, 3, {0, 1});
  Pass(std::chrono::seconds(301), false);
  const std::string reason = Last<wire::StopRanks>(a_.session).reason;
  EXPECT_NE(reason.find("no other process could take its place within 300 s (reform_timeout): its "
                        "node is lost, and elsewhere it waited for "),
            std::string::npos)
      << reason;
  EXPECT_NE(reason.find("CPU"), std::string::npos) << reason;
}

TEST_F(Replaces, RP4_ANodeThatJoinsInTimeIsRoom) {
  Begin();
  LoseB();
  Come(a_, 3, {0, 1});
  FakeNode c = Join(3, 2);
  Advance(std::chrono::seconds(1));
  Serve(c);
  Serve(c);
  Come(c, 3, {2, 3});
  EXPECT_EQ(Last<wire::FormGroup>(c.session).world_size, 4u);
}

TEST_F(Replaces, RP4_ANodeThatHasEndedTheAttemptIsNoPlace) {
  Begin();
  LoseB();
  Back(b_);
  EXPECT_EQ(Last<wire::EndEpoch>(b_.session).launch, launch_) << "what still runs there ends";
  Advance(std::chrono::seconds(1));
  Serve(b_);
  ASSERT_EQ(LaunchOf(launch_).ranks[2].node, b_.id);
  Say(b_.session, wire::EpochEnded{launch_, 1});
  EXPECT_NE(LaunchOf(launch_).ranks[2].done.outcome, wire::Outcome::kNone)
      << "it was told that the attempt is over before it heard of this";
}

TEST_F(Replaces, RP4_WhatANodeDoesNotHoldAnyMoreIsNoPlace) {
  Begin();
  LoseB();
  Back(b_);
  sent_.clear();
  Kill(1);
  EXPECT_EQ(Ordered(a_), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(Count<wire::ReplaceRanks>(b_.session), 0u) << "the launch's reservation is gone there";
}

TEST_F(Replaces, RP4_ARestartedHeadGoesOn) {
  Begin();
  LoseB();
  Boot();
  sent_.clear();
  Back(a_);
  FakeNode c = Join(3, 2);
  Advance(std::chrono::seconds(1));
  Serve(c);
  Serve(c);
  Come(a_, 3, {0, 1});
  Come(c, 3, {2, 3});
  EXPECT_EQ(Last<wire::FormGroup>(c.session).world_size, 4u);
}

TEST_F(Replaces, ACancelWhileItsPlaceIsEmpty) {
  Begin();
  LoseB();
  wire::CancelLaunch cancel;
  cancel.launch = launch_;
  cancel.hard = true;
  Say(client_, cancel, 99);
  for (std::uint32_t rank : {0u, 1u}) Say(a_.session, DoneOf(rank, wire::Outcome::kCancelled));
  ASSERT_FALSE(Open());
  EXPECT_EQ(Marker().outcome, wire::Outcome::kCancelled);
  FakeNode c = Join(3, 2);
  Advance(std::chrono::seconds(1));
  EXPECT_EQ(Count<wire::Reserve>(c.session), 0u) << "nothing is reserved for it any more";
}

}  // namespace
}  // namespace troupe::head
