// Method: the route's decisions alone; nothing is dialled. What it does with them runs in
// call_resume_test.cc and channel_later_test.cc.
#include "actors/caller/actor_route.h"

#include <gtest/gtest.h>

#include <chrono>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{};

TEST(ActorRoute, IsAimedOnce) {
  ActorRoute route(5s);
  EXPECT_TRUE(route.aimless());
  EXPECT_TRUE(route.AimHere("/tmp/a"));
  EXPECT_FALSE(route.aimless());
  EXPECT_TRUE(route.here());
  EXPECT_FALSE(route.AimHere("/tmp/b"));
  EXPECT_FALSE(route.AimRemote({.host = "10.0.0.2", .port = 6400}, {}));
  EXPECT_EQ(route.path(), "/tmp/a");
  EXPECT_TRUE(route.here());
}

TEST(ActorRoute, IsNotAimedOnceTheChannelIsOver) {
  ActorRoute route(5s);
  route.Close();
  EXPECT_FALSE(route.aimless());
  EXPECT_FALSE(route.AimHere("/tmp/a"));
  EXPECT_FALSE(route.AimRemote({.host = "10.0.0.2", .port = 6400}, {}));
  EXPECT_FALSE(route.here());
}

TEST(ActorRoute, OnThisHostALostConnectionIsTriedOnce) {
  ActorRoute route(5s);
  route.AimHere("/tmp/a");
  route.Connected(kStart);
  EXPECT_EQ(route.lost_reason(), "");
  EXPECT_TRUE(route.Lost(kStart + 1s, "reset by peer"));
  EXPECT_EQ(route.lost_reason(), "reset by peer");
  route.Connected(kStart + 1s);
  EXPECT_FALSE(route.Lost(kStart + 1s, "refused"));
  EXPECT_EQ(route.lost_reason(), "reset by peer")
      << "the loss that could be made good is the cause";
}

TEST(ActorRoute, OnAnotherHostItIsTriedForTheGracePeriodAndAnewAfterAWelcome) {
  ActorRoute route(5s);
  ASSERT_TRUE(route.AimRemote({.host = "10.0.0.2", .port = 6400}, {}));
  EXPECT_FALSE(route.here());
  EXPECT_EQ(route.target().host, "10.0.0.2");
  route.Connected(kStart);
  for (const Duration at : {1s, 2s, 3s}) {
    EXPECT_TRUE(route.Lost(kStart + at, "cut"));
    route.Connected(kStart + at);
  }
  EXPECT_FALSE(route.Lost(kStart + 6s, "cut"));
  route.Welcomed();
  EXPECT_TRUE(route.Lost(kStart + 7s, "cut"));
}

}  // namespace
}  // namespace troupe::actors
