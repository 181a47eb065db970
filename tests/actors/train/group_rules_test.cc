// The rules of a group by themselves, and a simulation: many groups of several ranks whose
// libraries answer, fail, hang and die at random under a virtual clock, with checkers for each
// rule.
#include "actors/train/core/group_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

namespace troupe::train {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Instant At(std::int64_t ms) { return Instant(milliseconds(ms)); }
std::vector<GroupAct> Acts(std::initializer_list<GroupAct> acts) { return acts; }

GroupRules Ready(bool can_revoke) {
  GroupRules rules("group dp, epoch 1, rank 0 of 4", {}, can_revoke);
  rules.OnBegin(At(0));
  rules.OnFormed(At(10));
  return rules;
}

TEST(GroupRules, GR2_GR3_WhatIsReadyIsRevokedAndAbortedWhenAllHaveStopped) {
  auto rules = Ready(true);
  auto effects = rules.OnStop(At(100), "rank 2 was killed");
  EXPECT_EQ(effects.acts, Acts({GroupAct::kWake, GroupAct::kRevoke}));
  EXPECT_EQ(effects.text, "rank 2 was killed");
  EXPECT_EQ(rules.OnRevoked(At(101), true).acts, Acts({GroupAct::kTellStopped}));
  EXPECT_EQ(rules.state(), GroupState::kStopped);
  EXPECT_EQ(rules.OnSurvivorsStopped(At(102)).acts, Acts({GroupAct::kAbort}));
  EXPECT_EQ(rules.OnAborted(At(103)).acts, Acts({GroupAct::kTellReleased}));
  EXPECT_EQ(rules.state(), GroupState::kReleased);
  EXPECT_FALSE(rules.deadline());
}

TEST(GroupRules, GR3_ASurvivorThatNeverStopsIsWaitedForASecond) {
  auto rules = Ready(true);
  rules.OnStop(At(100), "a death");
  rules.OnRevoked(At(150), true);
  EXPECT_TRUE(rules.OnTick(At(1149)).acts.empty());
  EXPECT_EQ(rules.deadline(), At(1150));
  EXPECT_EQ(rules.OnTick(At(1150)).acts, Acts({GroupAct::kAbort}));
  EXPECT_TRUE(rules.OnSurvivorsStopped(At(1151)).acts.empty());
}

TEST(GroupRules, GR2_WithoutRevokeItIsAbortedAtOnce) {
  auto rules = Ready(false);
  EXPECT_EQ(rules.OnStop(At(100), "a death").acts, Acts({GroupAct::kWake, GroupAct::kAbort}));
  EXPECT_EQ(rules.OnAborted(At(101)).acts, Acts({GroupAct::kTellStopped, GroupAct::kTellReleased}));
}

TEST(GroupRules, GR2_WhatIsFormingIsAbortedNeverRevoked) {
  GroupRules rules("g", {}, true);
  rules.OnBegin(At(0));
  EXPECT_EQ(rules.OnStop(At(5), "a death").acts, Acts({GroupAct::kWake, GroupAct::kAbort}));
  EXPECT_TRUE(rules.OnFormed(At(6)).acts.empty()) << "GR8: late";
  EXPECT_TRUE(rules.OnFormFailed(At(6), "aborted").acts.empty()) << "GR8: late";
  EXPECT_EQ(rules.reason(), "a death");
}

TEST(GroupRules, GR5_TheFirstReasonStays) {
  auto rules = Ready(true);
  rules.OnStop(At(1), "first");
  EXPECT_TRUE(rules.OnStop(At(2), "second").acts.empty());
  EXPECT_EQ(rules.reason(), "first");
}

TEST(GroupRules, GR7_FormingHasADeadlineThatNamesItsLength) {
  GroupTimes times;
  times.form_max = seconds(3);
  GroupRules rules("g", times, true);
  rules.OnBegin(At(1000));
  EXPECT_EQ(rules.deadline(), At(4000));
  const auto effects = rules.OnTick(At(4000));
  EXPECT_EQ(effects.acts, Acts({GroupAct::kWake, GroupAct::kTellFailed, GroupAct::kAbort}));
  EXPECT_NE(effects.text.find("counted from its beginning, after 3 s"), std::string::npos)
      << effects.text;
  EXPECT_EQ(rules.OnAborted(At(4001)).acts, Acts({GroupAct::kTellReleased}));
  EXPECT_EQ(rules.state(), GroupState::kFailed);
}

TEST(GroupRules, GR7_AReleaseThatNotAllComeToIsAStop) {
  auto rules = Ready(true);
  EXPECT_EQ(rules.OnRelease(At(100)).acts, Acts({GroupAct::kFinalize}));
  const auto effects = rules.OnTick(At(60'100));
  EXPECT_EQ(effects.acts, Acts({GroupAct::kWake, GroupAct::kAbort})) << "GR1, GR2";
  EXPECT_NE(effects.text.find("60 s"), std::string::npos) << effects.text;
}

TEST(GroupRules, AnOrderlyReleaseDestroysWhatIsFinalized) {
  auto rules = Ready(true);
  rules.OnRelease(At(100));
  EXPECT_EQ(rules.OnFinalized(At(101), true).acts, Acts({GroupAct::kDestroy}));
  EXPECT_TRUE(rules.OnStop(At(102), "late").acts.empty());
  EXPECT_EQ(rules.OnDestroyed(At(103)).acts, Acts({GroupAct::kTellReleased}));
  EXPECT_EQ(rules.state(), GroupState::kReleased);
}

TEST(GroupRules, GR1_NothingIsReleasedInOrderAfterAStop) {
  auto rules = Ready(true);
  rules.OnRelease(At(100));
  rules.OnStop(At(101), "a death");
  EXPECT_TRUE(rules.OnFinalized(At(102), true).acts.empty());
  EXPECT_TRUE(rules.OnRelease(At(103)).acts.empty());
}

TEST(GroupRules, GR4_AStuckLibraryEndsTheProcessAfterARevokeWasFollowedByAnAbort) {
  auto rules = Ready(true);
  rules.OnStop(At(100), "a death");
  EXPECT_EQ(rules.OnTick(At(1100)).acts, Acts({GroupAct::kAbort}));
  const auto effects = rules.OnTick(At(2100));
  EXPECT_EQ(effects.acts, Acts({GroupAct::kEndProcess}));
  EXPECT_NE(effects.text.find("ncclCommAbort has not returned after 1 s"), std::string::npos);
  EXPECT_TRUE(rules.OnTick(At(9000)).acts.empty()) << "once";
}

TEST(GroupRules, GR4_ARevokeThatFailedIsFollowedByAnAbort) {
  auto rules = Ready(true);
  rules.OnStop(At(100), "a death");
  EXPECT_EQ(rules.OnRevoked(At(101), false).acts, Acts({GroupAct::kAbort}));
}

// A simulated rank: its rules, and a library that answers after a while, or never.
struct SimulatedRank {
  SimulatedRank(bool can_revoke, const GroupTimes& times) : rules("sim", times, can_revoke) {}

  GroupRules rules;
  std::map<GroupAct, int> counted;
  bool dead = false, ready = false, stopped = false;
  bool revoked_while_ready = true;
};

class GroupSimulation {
 public:
  explicit GroupSimulation(std::uint64_t seed) : random_(seed) {}

  /// The virtual milliseconds until every rank that lives was released.
  std::int64_t Run() {
    const int size = static_cast<int>(Below(6)) + 2;
    can_revoke_ = Below(2) == 0;
    times_.form_max = seconds(3);
    for (int rank = 0; rank < size; ++rank) ranks_.emplace_back(can_revoke_, times_);
    for (int rank = 0; rank < size; ++rank) Perform(rank, Of(rank).rules.OnBegin(Now()));
    const int dies = static_cast<int>(Below(static_cast<std::uint64_t>(size)));
    const auto death_at = static_cast<std::int64_t>(Below(400));
    After(death_at, [this, dies] { Die(dies); });
    if (Below(3) == 0)  // the second death may fall into any phase of the first
      After(death_at + static_cast<std::int64_t>(Below(50)),
            [this, dies] { Die((dies + 1) % static_cast<int>(ranks_.size())); });
    while (!queue_.empty() && now_ms_ < 60'000) Step();
    Check();
    return now_ms_;
  }

 private:
  SimulatedRank& Of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  std::uint64_t Below(std::uint64_t limit) { return random_() % limit; }
  Instant Now() const { return At(now_ms_); }
  void After(std::int64_t ms, std::function<void()> what) {
    queue_.emplace(now_ms_ + ms, std::move(what));
  }

  void Step() {
    const auto first = queue_.begin();
    now_ms_ = first->first;
    const auto what = std::move(first->second);
    queue_.erase(first);
    what();
  }

  void Die(int rank) {
    Of(rank).dead = true;
    const auto verdict = static_cast<std::int64_t>(Below(5));
    for (int other = 0; other < static_cast<int>(ranks_.size()); ++other)
      After(verdict, [this, other] {
        if (Of(other).dead) return;
        Perform(other, Of(other).rules.OnStop(Now(), "a rank died"));
      });
    After(verdict + 5, [this] { TellAllStopped(); });
  }

  void TellAllStopped() {
    const bool all = std::all_of(ranks_.begin(), ranks_.end(), [](const SimulatedRank& each) {
      return each.dead || each.stopped;
    });
    for (int rank = 0; all && rank < static_cast<int>(ranks_.size()); ++rank)
      if (!Of(rank).dead) Perform(rank, Of(rank).rules.OnSurvivorsStopped(Now()));
  }

  bool AllBegan() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& each) {
      return !each.dead && each.counted.count(GroupAct::kInit) != 0;
    });
  }

  void Perform(int rank, const GroupEffects& effects) {
    auto& of = Of(rank);
    if (of.dead) return;
    for (const auto act : effects.acts) {
      ++of.counted[act];
      switch (act) {
        case GroupAct::kInit:
          After(static_cast<std::int64_t>(Below(200)), [this, rank] {
            if (AllBegan()) Perform(rank, Of(rank).rules.OnFormed(Now()));
          });
          break;
        case GroupAct::kTellReady:
          of.ready = true;
          break;
        case GroupAct::kRevoke:
          of.revoked_while_ready = of.ready;
          if (Below(10) != 0)  // else it is stuck
            After(static_cast<std::int64_t>(Below(30)), [this, rank, quiet = Below(8) != 0] {
              Perform(rank, Of(rank).rules.OnRevoked(Now(), quiet));
            });
          break;
        case GroupAct::kAbort:
          if (Below(20) != 0)
            After(static_cast<std::int64_t>(Below(30)),
                  [this, rank] { Perform(rank, Of(rank).rules.OnAborted(Now())); });
          break;
        case GroupAct::kTellStopped:
          of.stopped = true;
          After(1, [this] { TellAllStopped(); });
          break;
        case GroupAct::kEndProcess:
          Die(rank);
          break;
        default:
          break;
      }
    }
    if (const auto deadline = of.rules.deadline())
      After(std::max<std::int64_t>(Millis(*deadline - Now()), 0) + 1,
            [this, rank] { Perform(rank, Of(rank).rules.OnTick(Now())); });
  }

  void Check() {
    for (const auto& of : ranks_) {
      const auto count = [&of](GroupAct act) {
        const auto found = of.counted.find(act);
        return found == of.counted.end() ? 0 : found->second;
      };
      EXPECT_EQ(count(GroupAct::kDestroy) + count(GroupAct::kFinalize), 0) << "GR1";
      EXPECT_TRUE(of.revoked_while_ready) << "GR2";
      EXPECT_LE(count(GroupAct::kRevoke), can_revoke_ ? 1 : 0) << "GR2";
      EXPECT_LE(count(GroupAct::kWake), 1) << "GR6";
      EXPECT_LE(count(GroupAct::kAbort), 1);
      EXPECT_LE(count(GroupAct::kTellReleased), 1);
      if (of.dead) continue;
      EXPECT_EQ(count(GroupAct::kWake), 1) << "who lives was woken";
      EXPECT_EQ(count(GroupAct::kTellReleased), 1) << "who lives was freed";
      EXPECT_FALSE(of.rules.deadline()) << "nothing is left to happen";
    }
    EXPECT_LT(now_ms_, 10'000) << "the end is bounded";
  }

  std::mt19937_64 random_;
  std::multimap<std::int64_t, std::function<void()>> queue_;
  std::int64_t now_ms_ = 0;
  std::vector<SimulatedRank> ranks_;
  GroupTimes times_;
  bool can_revoke_ = false;
};

TEST(GroupRules, Simulation_EveryRankThatLivesIsWokenAndFreedInBoundedTime) {
  for (std::uint64_t seed = 1; seed <= 5000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GroupSimulation(seed).Run();
  }
}

}  // namespace
}  // namespace troupe::train
