// Method: the edges of each rule.
#include "actors/core/session/flow_control.h"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

TEST(CallerFlow, FC1_FullByBytesOrByCalls) {
  EXPECT_FALSE(CallerFlow::Full(CallerFlow::kUnsentMax - 1, CallerFlow::kKeptMax - 1,
                                CallerFlow::kOutstandingMax - 1));
  EXPECT_TRUE(CallerFlow::Full(CallerFlow::kUnsentMax, 0, 0));
  EXPECT_TRUE(CallerFlow::Full(0, CallerFlow::kKeptMax, 0));
  EXPECT_TRUE(CallerFlow::Full(0, 0, CallerFlow::kOutstandingMax));
}

TEST(CallerFlow, FC2_RoomOpensWellBelowFull) {
  EXPECT_TRUE(CallerFlow::HasRoom(CallerFlow::kUnsentMax / 2, CallerFlow::kKeptMax / 2, 0));
  EXPECT_FALSE(CallerFlow::HasRoom(CallerFlow::kUnsentMax / 2 + 1, 0, 0));
  EXPECT_FALSE(CallerFlow::HasRoom(0, CallerFlow::kKeptMax / 2 + 1, 0));
  EXPECT_FALSE(CallerFlow::HasRoom(0, 0, CallerFlow::kOutstandingMax));
  EXPECT_TRUE(CallerFlow::HasRoom(0, 0, CallerFlow::kOutstandingMax / 4 * 3));
}

TEST(CallerFlow, FC4_FlushesTheFirstThenInBatches) {
  EXPECT_TRUE(CallerFlow::FlushNow(0, 1, 40));
  EXPECT_FALSE(CallerFlow::FlushNow(1, 1, 40));
  EXPECT_FALSE(CallerFlow::FlushNow(9, CallerFlow::kFramesPerFlush - 1, 40));
  EXPECT_TRUE(CallerFlow::FlushNow(9, CallerFlow::kFramesPerFlush, 40));
  EXPECT_TRUE(CallerFlow::FlushNow(9, 2, CallerFlow::kBytesPerFlush));
}

TEST(CallerFlow, DrainsWhenManyAreOutOrTheSocketIsFull) {
  EXPECT_FALSE(CallerFlow::Drain(CallerFlow::kDrainFrom, false));
  EXPECT_TRUE(CallerFlow::Drain(CallerFlow::kDrainFrom + 1, false));
  EXPECT_TRUE(CallerFlow::Drain(0, true));
}

TEST(ActorFlow, FC3_StopsAtItsLimits) {
  EXPECT_TRUE(ActorFlow::MayRun(ActorFlow::kRepliesMax, ActorFlow::kRunningMax - 1));
  EXPECT_FALSE(ActorFlow::MayRun(ActorFlow::kRepliesMax + 1, 0));
  EXPECT_FALSE(ActorFlow::MayRun(0, ActorFlow::kRunningMax));
}

}  // namespace
}  // namespace troupe::actors
