// Method: coroutines that end, throw or wait for ever are spawned into a Scope on a private
// io_context; the test runs the loop and reads what the Scope recorded.
#include "runtime/async/scope.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <stdexcept>

#include "runtime/async/deadline.h"
#include "runtime/base/log.h"

namespace troupe::async {
namespace {

Task<void> CountTo(int* count) {
  ++*count;
  co_return;
}
Task<void> Throw() {
  throw std::runtime_error("the disk is on fire");
  co_return;
}
Task<void> WaitForEver(bool* ended) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  timer.expires_at(asio::steady_timer::time_point::max());
  co_await timer.async_wait(kTuple);
  *ended = true;
}
Task<void> WaitTwice() {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  timer.expires_at(asio::steady_timer::time_point::max());
  co_await timer.async_wait(kTuple);
  co_await timer.async_wait(kTuple);  // a cancelled coroutine ends here, by Asio's own exception
}
Task<void> CancelAndWait(Scope* scope, bool* done) {
  scope->Cancel();
  co_await scope->Wait();
  *done = true;
}

TEST(Scope, RunsItsTasksAndIsEmptyAfterwards) {
  asio::io_context loop(1);
  Scope scope(loop.get_executor(), "test");
  int count = 0;
  scope.Spawn("a", CountTo(&count));
  scope.Spawn("b", CountTo(&count));
  EXPECT_EQ(count, 0) << "a task must not run inside Spawn";
  EXPECT_EQ(scope.running(), 2u);
  loop.run();
  EXPECT_EQ(count, 2);
  EXPECT_EQ(scope.running(), 0u);
  EXPECT_TRUE(scope.first_error().ok());
}

Task<void> SpawnAnother(Scope* scope, int* count, int* seen_inside) {
  scope->Spawn("inner", CountTo(count));
  *seen_inside = *count;
  co_return;
}
TEST(Scope, SpawnedOnTheLoopItselfATaskStillBeginsLater) {
  asio::io_context loop(1);
  Scope scope(loop.get_executor(), "test");
  int count = 0, seen_inside = -1;
  scope.Spawn("outer", SpawnAnother(&scope, &count, &seen_inside));
  loop.run();
  EXPECT_EQ(seen_inside, 0);
  EXPECT_EQ(count, 1);
}

TEST(Scope, AnExceptionIsLoggedAndRecordedNotSwallowed) {
  std::string logged;
  SetLogSink([&logged](LogLevel, const std::string& line) { logged += line; });
  asio::io_context loop(1);
  Scope scope(loop.get_executor(), "test");
  scope.Spawn("burning", Throw());
  loop.run();
  SetLogSink(nullptr);
  EXPECT_NE(logged.find("the disk is on fire"), std::string::npos) << logged;
  EXPECT_EQ(ErrorCodeOf(scope.first_error()), ErrorCode::kInternal);
  EXPECT_NE(MessageOf(scope.first_error()).find("burning"), std::string::npos);
}

TEST(Scope, CancelEndsEveryTaskAndWaitSeesTheLastOne) {
  asio::io_context loop(1);
  Scope scope(loop.get_executor(), "test");
  Scope outer(loop.get_executor(), "outer");
  bool first = false, second = false, waited = false;
  scope.Spawn("first", WaitForEver(&first));
  scope.Spawn("second", WaitForEver(&second));
  loop.poll();
  EXPECT_FALSE(first);
  outer.Spawn("stop", CancelAndWait(&scope, &waited));
  loop.restart();
  loop.run();
  EXPECT_TRUE(first && second && waited);
  int count = 0;
  scope.Spawn("late", CountTo(&count));
  loop.restart();
  loop.run();
  EXPECT_EQ(count, 0) << "a cancelled scope takes no new task";
}

TEST(Scope, EndingACancelledTaskAtItsNextSuspensionIsNoFault) {
  asio::io_context loop(1);
  Scope scope(loop.get_executor(), "test");
  scope.Spawn("twice", WaitTwice());
  loop.poll();
  scope.Cancel();
  loop.restart();
  loop.run();
  EXPECT_EQ(scope.running(), 0u);
  EXPECT_TRUE(scope.first_error().ok());
}

Task<void> CancelOwnScope(Scope* scope) {
  scope->Cancel();
  co_return;
}
TEST(Scope, ATaskThatNeverSuspendsMayCancelItsOwnScope) {
  asio::io_context loop(1);
  Scope scope(loop.get_executor(), "test");
  scope.Spawn("last", CancelOwnScope(&scope));
  loop.run();
  EXPECT_EQ(scope.running(), 0u);
  EXPECT_TRUE(scope.first_error().ok());
}

TEST(Scope, DestroyedWhileTasksRunTheyEndOnTheirOwn) {
  asio::io_context loop(1);
  bool ended = false;
  {
    Scope scope(loop.get_executor(), "test");
    scope.Spawn("waiting", WaitForEver(&ended));
    loop.poll();
  }
  loop.restart();
  loop.run();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace troupe::async
