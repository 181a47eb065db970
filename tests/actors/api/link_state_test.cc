// Rules of a link that follows the head's reports, one by one.
#include "actors/api/core/link_state.h"

#include <gtest/gtest.h>

namespace troupe::api {
namespace {

using Orders = std::vector<LinkOrder>;
using State = wire::ActorState;

TEST(LinkState, LS1_WordThatWasOvertakenChangesNothing) {
  LinkState state;
  EXPECT_EQ(state.Told(State::kAlive, 2), Orders{LinkOrder::kAim});
  EXPECT_EQ(state.Told(State::kStarting, 2), Orders());
  EXPECT_EQ(state.Told(State::kAlive, 2), Orders());
}

TEST(LinkState, LS2_ALifeThatIsOverEndsItsCallsOnce) {
  LinkState state;
  state.Told(State::kAlive, 1);
  EXPECT_EQ(state.Told(State::kStarting, 2), Orders{LinkOrder::kRetire});
  EXPECT_EQ(state.Told(State::kStarting, 2), Orders());
  EXPECT_EQ(state.Told(State::kAlive, 2), Orders{LinkOrder::kAim});
  EXPECT_EQ(state.Told(State::kAlive, 3), (Orders{LinkOrder::kRetire, LinkOrder::kAim}));
}

TEST(LinkState, LS3_DeadIsForGood) {
  LinkState state;
  EXPECT_EQ(state.Told(State::kDead, 1), Orders{LinkOrder::kEnd});
  EXPECT_EQ(state.Told(State::kAlive, 2), Orders());
}

TEST(LinkState, LS4_OutOfReachPasses) {
  LinkState state;
  state.Told(State::kAlive, 1);
  EXPECT_EQ(state.Told(State::kUnavailable, 1), Orders{LinkOrder::kLoseSight});
  EXPECT_EQ(state.Told(State::kUnavailable, 1), Orders());
  EXPECT_EQ(state.Told(State::kAlive, 1), (Orders{LinkOrder::kRenew, LinkOrder::kAim}));
}

TEST(LinkState, WhatIsSuspectedIsAimedAtAgain) {
  LinkState state;
  state.Told(State::kAlive, 1);
  state.Suspect();
  EXPECT_EQ(state.Told(State::kAlive, 1), Orders{LinkOrder::kAim});
}

}  // namespace
}  // namespace troupe::api
