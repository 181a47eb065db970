// Method: a Timer under the real clock, armed, armed again and cancelled; and the seams of time and
// randomness read twice.
#include "runtime/async/timer.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>

#include "runtime/async/loop_thread.h"
#include "runtime/async/os_random.h"
#include "runtime/async/real_clock.h"

namespace troupe::async {
namespace {

using namespace std::chrono_literals;

TEST(Timer, FiresOnceNotBeforeItsTime) {
  asio::io_context loop(1);
  RealClock clock;
  int fired = 0;
  Instant at{};
  Timer timer(loop.get_executor(), clock, [&] {
    ++fired;
    at = clock.Now();
  });
  const Instant due = clock.Now() + 20ms;
  timer.ArmAt(due);
  EXPECT_EQ(fired, 0);
  loop.run();
  EXPECT_EQ(fired, 1);
  EXPECT_GE(at, due);
}

TEST(Timer, ArmingAgainReplacesAndCancelSilences) {
  asio::io_context loop(1);
  RealClock clock;
  int fired = 0;
  Timer timer(loop.get_executor(), clock, [&] { ++fired; });
  timer.ArmAt(clock.Now() + 1h);
  timer.ArmAt(clock.Now() + 1ms);
  loop.run();
  EXPECT_EQ(fired, 1);
  timer.ArmAt(clock.Now() + 1ms);
  timer.Cancel();
  loop.restart();
  loop.run();
  EXPECT_EQ(fired, 1);
}

TEST(RealClock, IsMonotonicAndWallTimeIsOfThisCentury) {
  RealClock clock;
  const Instant first = clock.Now();
  EXPECT_LE(first, clock.Now());
  EXPECT_GT(clock.WallTimeUs(), 1'700'000'000'000'000u);
}

TEST(OsRandom, DoesNotRepeatItself) {
  OsRandom random;
  EXPECT_NE(random.Next(), random.Next());
  EXPECT_EQ(RandomBytes(32).size(), 32u);
  EXPECT_NE(RandomBytes(32), RandomBytes(32));
}

TEST(LoopThread, RunsPostedWorkOnItsOwnThread) {
  LoopThread loop("test-loop");
  std::promise<bool> on_loop;
  asio::post(loop.executor(), [&] { on_loop.set_value(loop.OnLoop()); });
  EXPECT_TRUE(on_loop.get_future().get());
  EXPECT_FALSE(loop.OnLoop());
}

}  // namespace
}  // namespace troupe::async
