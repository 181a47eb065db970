// CancelGuard: what every spawned coroutine is wrapped in.
//
// The problem: Asio 1.81 suspends once more after a spawned coroutine that never suspended itself,
// and that suspension throws out of everything, ending the process, when the coroutine was
// cancelled meanwhile (e.g. it cancelled its own Scope). The guard lets a finished coroutine
// finish.
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "runtime/async/task.h"

namespace troupe::async {

template <class T>
Task<T> CancelGuard(Task<T> task) {
  std::exception_ptr error;
  std::optional<T> result;
  try {
    result.emplace(co_await std::move(task));
  } catch (...) {
    error = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  if (error) std::rethrow_exception(error);
  co_return *std::move(result);
}

inline Task<void> CancelGuard(Task<void> task) {
  std::exception_ptr error;
  try {
    co_await std::move(task);
  } catch (...) {
    error = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  if (error) std::rethrow_exception(error);
}

}  // namespace troupe::async
