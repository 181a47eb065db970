// Method: tasks of known length race a deadline on a private io_context; which result comes back,
// and that the loser was cancelled, is read afterwards.
#include "runtime/async/deadline.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "runtime/async/scope.h"

namespace troupe::async {
namespace {

using namespace std::chrono_literals;

Task<StatusOr<std::string>> Answer(std::string value, Duration after, bool* cancelled) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  timer.expires_after(after);
  auto [error] = co_await timer.async_wait(kTuple);
  *cancelled = static_cast<bool>(error);
  if (error) co_return MakeError(ErrorCode::kCancelled, "cancelled");
  co_return value;
}
Task<void> Race(Duration task_length, Duration limit, StatusOr<std::string>* result,
                bool* cancelled) {
  auto task = Answer(std::string(64, 'v'), task_length, cancelled);
  *result = co_await WithDeadline(std::move(task), limit, "the answer of 10.0.0.7");
}
Task<Status> Boom() {
  throw std::runtime_error("boom");
  co_return absl::OkStatus();
}
Task<void> CatchBoom(std::string* text) {
  auto task = Boom();
  try {
    Status status = co_await WithDeadline(std::move(task), 10s, "boom");
    *text = "status";
  } catch (const std::runtime_error& e) {
    *text = e.what();
  }
}

TEST(Deadline, ATaskInTimeGivesItsResult) {
  asio::io_context loop(1);
  Scope scope(loop.get_executor(), "test");
  StatusOr<std::string> result;
  bool cancelled = true;
  scope.Spawn("race", Race(1ms, 10s, &result, &cancelled));
  loop.run();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->size(), 64u);
  EXPECT_FALSE(cancelled);
}

TEST(Deadline, ALateTaskIsCancelledAndTheErrorNamesTheLimit) {
  asio::io_context loop(1);
  Scope scope(loop.get_executor(), "test");
  StatusOr<std::string> result;
  bool cancelled = false;
  scope.Spawn("race", Race(60s, 20ms, &result, &cancelled));
  loop.run();
  EXPECT_TRUE(cancelled);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(ErrorCodeOf(result.status()), ErrorCode::kTimeout);
  EXPECT_EQ(MessageOf(result.status()), "timed out after 0.0 s: the answer of 10.0.0.7");
}

TEST(Deadline, AnExceptionOfTheTaskComesThrough) {
  asio::io_context loop(1);
  Scope scope(loop.get_executor(), "test");
  std::string text;
  scope.Spawn("catch", CatchBoom(&text));
  loop.run();
  EXPECT_EQ(text, "boom");
}

}  // namespace
}  // namespace troupe::async
