#include "runtime/async/scope.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <list>
#include <utility>

#include "runtime/async/cancel_guard.h"
#include "runtime/base/log.h"

namespace troupe::async {
namespace {

/// Asio's own way of ending a cancelled coroutine at its next suspension point.
bool IsCancellation(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const boost::system::system_error& e) {
    return e.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

std::string TextOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

/// Begins in a later turn of the loop: co_spawn alone would run the task inside Spawn() when called
/// on the loop's thread, and its caller in the middle of a change would meet what the task does.
Task<void> Begin(Task<void> task) {
  co_await asio::post(asio::use_awaitable);
  co_await std::move(task);
}

}  // namespace

// Shared with the completion handlers, which may run after the Scope is gone.
struct Scope::State {
  State(Executor e, std::string n) : executor(std::move(e)), name(std::move(n)), idle(executor) {}

  void Done(std::list<asio::cancellation_signal>::iterator signal, const std::string& task,
            const std::exception_ptr& error) {
    signals.erase(signal);
    if (error && !(cancelled && IsCancellation(error))) {
      const std::string text = name + ": task '" + task + "' threw: " + TextOf(error);
      Log(LogLevel::kError, "task failed", {{"scope", name}, {"task", task}, {"error", text}});
      if (first_error.ok()) first_error = MakeError(ErrorCode::kInternal, text);
    }
    if (signals.empty()) idle.cancel();
  }

  Executor executor;
  std::string name;
  std::list<asio::cancellation_signal> signals;
  asio::steady_timer idle;  // waiters sleep on it; it is cancelled when the last task ends
  Status first_error;
  bool cancelled = false;
};

Scope::Scope(Executor executor, std::string name)
    : state_(std::make_shared<State>(std::move(executor), std::move(name))) {}

Scope::~Scope() { Cancel(); }

void Scope::Spawn(std::string_view name, Task<void> task) {
  if (state_->cancelled) return;
  const auto signal = state_->signals.emplace(state_->signals.end());
  auto done = [state = state_, signal, task_name = std::string(name)](std::exception_ptr error) {
    state->Done(signal, task_name, error);
  };
  asio::co_spawn(state_->executor, CancelGuard(Begin(std::move(task))),
                 asio::bind_cancellation_slot(signal->slot(), std::move(done)));
}

void Scope::Cancel() {
  state_->cancelled = true;
  // A task may end inside emit() and take its signal out of the list: step first, then emit.
  const std::shared_ptr<State> state = state_;
  for (auto it = state->signals.begin(); it != state->signals.end();) {
    asio::cancellation_signal& signal = *it++;
    signal.emit(asio::cancellation_type::all);
  }
}

Task<void> Scope::Wait() {
  const std::shared_ptr<State> state = state_;
  while (!state->signals.empty()) {
    state->idle.expires_at(asio::steady_timer::time_point::max());
    co_await state->idle.async_wait(kTuple);
  }
}

std::size_t Scope::running() const { return state_->signals.size(); }
Status Scope::first_error() const { return state_->first_error; }

}  // namespace troupe::async
