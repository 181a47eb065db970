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

TEST(SpinPolicy, BudgetIsWithinWhatTheGilMayBeHeldFor) {
  EXPECT_LE(SpinPolicy(true).budget(), std::chrono::microseconds(40));
}

}  // namespace
}  // namespace troupe::actors
