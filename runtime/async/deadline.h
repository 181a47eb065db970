// WithDeadline: the result of a task, or kTimeout with a text that says what took longer than what.
//
// View: one io_context thread. Suspends. When the time is over the task is cancelled (terminal) and
// awaited: its operations must honour cancellation, as every Asio socket and timer operation does.
// Cancelling the caller cancels both. What the task did before it was cancelled stays done: a
// half-read connection is to be closed.
// Example:
//   auto reading = connection.Receive();
//   auto hello = co_await WithDeadline(std::move(reading), 5s, "the first message of 10.0.0.7");
#pragma once

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "runtime/async/cancel_guard.h"
#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace troupe::async {

/// "timed out after 5.0 s: <what>".
inline Status TimeoutError(Duration limit, const std::string& what) {
  char text[48];
  std::snprintf(text, sizeof text, "timed out after %.1f s: ", Seconds(limit));
  return MakeError(ErrorCode::kTimeout, text + what);
}

/// T is Status or StatusOr<X>.
template <class T>
Task<T> WithDeadline(Task<T> task, Duration limit, std::string what) {
  Executor executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor);
  timer.expires_after(limit);
  auto both = asio::experimental::make_parallel_group(
      asio::co_spawn(executor, CancelGuard(std::move(task)), asio::deferred),
      timer.async_wait(asio::deferred));
  auto [order, error, result, timer_error] =
      co_await both.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (error && order[0] == 0) std::rethrow_exception(error);
  if (order[0] == 0) co_return std::move(result);
  // The task may have finished in the same instant: its result then counts.
  if (!error && result.ok()) co_return std::move(result);
  co_return TimeoutError(limit, what);
}

/// Suspends for `length`. For back-off and periodic work, never to wait for an event.
inline Task<void> SleepFor(Duration length) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  timer.expires_after(length);
  co_await timer.async_wait(kTuple);
}

}  // namespace troupe::async
