// Method: pure, by value.
#include "worker/core/oom_score.h"

#include <gtest/gtest.h>

namespace troupe::worker {
namespace {

constexpr std::uint64_t kGib = 1ull << 30;

TEST(OomScoreTest, EveryProcessWithUserCodeGetsTheSameSoThatTheLargestIsTaken) {
  EXPECT_EQ(OomScoreOf(0, kGib, 0), 500);
  EXPECT_EQ(OomScoreOf(0, 9 * kGib, 0), 500) << "it said nothing of how much it would use";
  EXPECT_EQ(OomScoreOf(0, kGib, kGib), 500) << "as much as it said";
}

TEST(OomScoreTest, OneThatUsesMoreThanItSaidGoesFirst) {
  EXPECT_EQ(OomScoreOf(0, kGib + 1, kGib), 900);
}

TEST(OomScoreTest, ItIsOverWhatTheWorkerWasStartedWithAndNoMoreThanTheKernelTakes) {
  EXPECT_EQ(OomScoreOf(-100, kGib, 0), 400);
  EXPECT_EQ(OomScoreOf(300, 2 * kGib, kGib), 1000);
}

}  // namespace
}  // namespace troupe::worker
