// Method: sequences of outcomes, and how many waits are then skipped.
#include "actors/core/policy/spin_policy.h"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

int SkippedNow(SpinPolicy& policy) {
  int skipped = 0;
  while (!policy.ShouldSpin()) ++skipped;
  return skipped;
}

TEST(SpinPolicy, SP1_OffMeansNever) {
  SpinPolicy off(false);
  SpinPolicy no_budget(true, Duration::zero());
  for (int i = 0; i < 2000; ++i) {
    EXPECT_FALSE(off.ShouldSpin());
    EXPECT_FALSE(no_budget.ShouldSpin());
  }
}

void MissInARow(SpinPolicy& policy) {
  for (int i = 0; i < SpinPolicy::kMissesMax; ++i) {
    ASSERT_TRUE(policy.ShouldSpin());
    policy.Miss();
  }
}

TEST(SpinPolicy, SP2_MissesInARowTurnItOffForAWhile) {
  SpinPolicy policy(true);
  for (int time = 0; time < 3; ++time) {
    MissInARow(policy);
    MissInARow(policy);
    EXPECT_EQ(SkippedNow(policy), SpinPolicy::kSkipAfterMisses);
  }
}

TEST(SpinPolicy, SP5_AfterShortMissesPollsAreLongUntilLongOnesMissToo) {
  SpinPolicy policy(true);
  const Duration ordinary = policy.budget();
  MissInARow(policy);
  EXPECT_EQ(policy.budget(), SpinPolicy::kLongFactor * ordinary);
  policy.Hit();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(policy.ShouldSpin());
    if (i % 2 == 0) {
      policy.Miss();
    } else {
      policy.Hit();
    }
    EXPECT_EQ(policy.budget(), SpinPolicy::kLongFactor * ordinary);
  }
  MissInARow(policy);
  EXPECT_EQ(policy.budget(), ordinary);
}

TEST(SpinPolicy, SP5_WhatIsCalledEachMillisecondCostsLessThanAHundredthOfAProcessor) {
  SpinPolicy policy(true);
  Duration polled = Duration::zero();
  constexpr int kWaits = 100'000;
  for (int i = 0; i < kWaits; ++i) {
    if (!policy.ShouldSpin()) continue;
    polled += policy.budget();
    policy.Miss();
  }
  EXPECT_LT(polled, kWaits * std::chrono::milliseconds(1) / 100);
}

TEST(SpinPolicy, SP2_AHitBreaksTheRow) {
  SpinPolicy policy(true);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(policy.ShouldSpin());
    if (i % SpinPolicy::kMissesMax == SpinPolicy::kMissesMax - 1) {
      policy.Hit();
    } else {
      policy.Miss();
    }
  }
}

TEST(SpinPolicy, SP3_ALongStepIsContention) {
  SpinPolicy policy(true);
  ASSERT_TRUE(policy.ShouldSpin());
  EXPECT_FALSE(policy.Contended(SpinPolicy::kContendedFactor * policy.budget()));
  EXPECT_EQ(SkippedNow(policy), 0);
  EXPECT_TRUE(policy.Contended(SpinPolicy::kContendedFactor * policy.budget() + Duration(1)));
  EXPECT_EQ(SkippedNow(policy), SpinPolicy::kSkipAfterContention);
}

TEST(SpinPolicy, SP4_WhereBlockingIsCostlyContentionIsForgottenAndPollingGoesOnLonger) {
  SpinPolicy policy(true);
  const Duration ordinary = policy.budget();
  EXPECT_TRUE(policy.Contended(std::chrono::milliseconds(1)));
  policy.BlockingIsCostly(true);
  EXPECT_EQ(SkippedNow(policy), 0);
  EXPECT_EQ(policy.budget(), SpinPolicy::kCostlyFactor * ordinary);
  EXPECT_FALSE(policy.Contended(std::chrono::milliseconds(1)));
  policy.BlockingIsCostly(false);
  EXPECT_EQ(policy.budget(), ordinary);
  EXPECT_TRUE(policy.Contended(std::chrono::milliseconds(1)));
}

TEST(SpinPolicy, SP4_MissesCountThoughBlockingIsCostly) {
  SpinPolicy policy(true);
  for (int i = 0; i < SpinPolicy::kMissesMax; ++i) {
    policy.BlockingIsCostly(true);
    ASSERT_TRUE(policy.ShouldSpin());
    policy.Miss();
  }
  policy.BlockingIsCostly(true);
  EXPECT_EQ(SkippedNow(policy), SpinPolicy::kSkipWhileCostly)
      << "a peer that takes long is not polled for ever";
}

TEST(SpinPolicy, BudgetIsWithinWhatTheGilMayBeHeldFor) {
  EXPECT_LE(SpinPolicy(true).budget(), std::chrono::microseconds(40))
      << "where others of the process can have it at once";
}

}  // namespace
}  // namespace troupe::actors
