// Late ranks, and overdue operations, from numbers alone.
#include "actors/train/core/progress.h"

#include <gtest/gtest.h>

namespace troupe::train {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Instant AtSeconds(double s) {
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s)));
}

TEST(Progress, PR1_TheLateAreThoseWhoseEnteredNumberIsLowest) {
  const RankProgress ranks[] = {{0, 7, 6}, {1, 6, 6}, {2, 7, 6}, {3, 6, 5}};
  EXPECT_EQ(LateRanks(ranks), (std::vector<int>{1, 3}));
}

TEST(Progress, PR1_NobodyIsLateWhereAllWaitInTheSame) {
  const RankProgress ranks[] = {{0, 7, 6}, {1, 7, 6}};
  EXPECT_TRUE(LateRanks(ranks).empty());
  EXPECT_TRUE(LateRanks({}).empty());
}

TEST(Progress, PR2_AMinuteWhileFewAreKnownThenThreeMediansTenSecondsAtLeast) {
  OperationTimes times;
  for (int i = 0; i < 9; ++i) times.Add(milliseconds(20));
  EXPECT_EQ(times.OverdueAfter(), seconds(60));
  times.Add(seconds(500));  // an exceptional time
  EXPECT_EQ(times.OverdueAfter(), seconds(10));
  for (int i = 0; i < 64; ++i) times.Add(seconds(7));
  EXPECT_EQ(times.OverdueAfter(), seconds(21));
}

TEST(Progress, PR3_AnOverdueOperationIsToldOfOnce) {
  ProgressWatch watch;
  watch.OnEntered(1, AtSeconds(100));
  EXPECT_FALSE(watch.OnTick(AtSeconds(159)));
  const auto overdue = watch.OnTick(AtSeconds(161));
  ASSERT_TRUE(overdue);
  EXPECT_EQ(overdue->seq, 1u);
  EXPECT_EQ(overdue->since, seconds(61));
  EXPECT_EQ(overdue->most, seconds(60));
  EXPECT_FALSE(watch.OnTick(AtSeconds(1000)));
  watch.OnFinished(1, AtSeconds(1000));
  watch.OnEntered(2, AtSeconds(1001));
  EXPECT_TRUE(watch.OnTick(AtSeconds(1061)));
}

TEST(Progress, AnOperationBehindAnotherBeginsWhenThatOneEnds) {
  ProgressWatch watch;
  for (std::uint64_t seq = 1; seq <= 20; ++seq) watch.OnEntered(seq, AtSeconds(0));
  for (std::uint64_t seq = 1; seq <= 12; ++seq)
    watch.OnFinished(seq, AtSeconds(static_cast<double>(seq)));
  EXPECT_EQ(watch.next(), AtSeconds(12 + 10)) << "each took a second";
}

TEST(Progress, PR4_NumbersNeverGoBackAndWhatIsFinishedWasEntered) {
  ProgressWatch watch;
  watch.OnEntered(5, AtSeconds(1));
  watch.OnEntered(4, AtSeconds(2));
  watch.OnFinished(9, AtSeconds(3));
  watch.OnFinished(2, AtSeconds(4));
  EXPECT_EQ(watch.progress(3).entered, 5u);
  EXPECT_EQ(watch.progress(3).finished, 5u);
  EXPECT_EQ(watch.progress(3).rank, 3);
}

}  // namespace
}  // namespace troupe::train
