// Method: sequences of outcomes, and how many waits are then skipped.
#include "actors/spin_policy.h"

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

TEST(SpinPolicy, SP2_MissesInARowTurnItOffForAWhile) {
  SpinPolicy policy(true);
  for (int i = 0; i < SpinPolicy::kMissesMax; ++i) {
    ASSERT_TRUE(policy.ShouldSpin());
    policy.Miss();
  }
  EXPECT_EQ(SkippedNow(policy), SpinPolicy::kSkipAfterMisses);
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
  EXPECT_EQ(SkippedNow(policy), SpinPolicy::kSkipWhileCostly) << "a peer that takes long is not polled for ever";
}

TEST(SpinPolicy, BudgetIsWithinWhatTheGilMayBeHeldFor) {
  EXPECT_LE(SpinPolicy(true).budget(), std::chrono::microseconds(40)) << "where others of the process can have it at once";
}

}  // namespace
}  // namespace troupe::actors
