// Method: views of the gate over time, and the steps they lead to.
#include "actors/core/policy/watch_policy.h"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using Step = WatchPolicy::Step;

WatchPolicy::View View(std::uint64_t turns, bool vacant) {
  WatchPolicy::View view;
  view.turns = turns;
  view.vacant = vacant;
  return view;
}

TEST(WatchPolicy, WP1_TicksWhileCallersUseTheGate) {
  WatchPolicy policy;
  for (std::uint64_t turn = 1; turn < 100; ++turn) {
    EXPECT_EQ(policy.Next(View(2 * turn, true)), Step::kTick);
    EXPECT_EQ(policy.Next(View(2 * turn + 1, false)), Step::kTick);
  }
}

TEST(WatchPolicy, WP2_WatchesAfterAQuietTick) {
  WatchPolicy policy;
  EXPECT_EQ(policy.Next(View(5, true)), Step::kTick);
  EXPECT_EQ(policy.Next(View(5, true)), Step::kWatch);
  EXPECT_EQ(policy.Next(View(6, true)), Step::kTick);
}

TEST(WatchPolicy, WP2_WatchesAtOnceForAFuture) {
  WatchPolicy policy;
  for (std::uint64_t turn = 0; turn < 10; ++turn) {
    WatchPolicy::View view = View(turn, true);
    view.futures_wait = true;
    EXPECT_EQ(policy.Next(view), Step::kWatch);
  }
}

TEST(WatchPolicy, WP3_ParksWhileOneThreadLeadsForLong) {
  WatchPolicy policy;
  int ticks = 0;
  while (policy.Next(View(7, false)) == Step::kTick) ASSERT_LT(++ticks, 100);
  EXPECT_EQ(ticks, WatchPolicy::kTicksToPark);
  EXPECT_EQ(policy.Next(View(7, false)), Step::kPark);
  EXPECT_EQ(policy.Next(View(8, false)), Step::kTick);  // another leader: hot again
}

TEST(WatchPolicy, WP3_NeverParksOnStrandedFrames) {
  WatchPolicy policy;
  for (int i = 0; i < 100; ++i) {
    WatchPolicy::View view = View(7, false);
    view.stranded = true;
    EXPECT_EQ(policy.Next(view), Step::kTick);
  }
}

}  // namespace
}  // namespace troupe::actors
