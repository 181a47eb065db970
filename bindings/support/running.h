// The call that the current thread runs: what get_runtime_context().is_canceled() asks, and what it
// starts is cancelled with it. Needs the GIL.
#pragma once

#include <cstdint>
#include <utility>

#include "actors/server/caller_connection.h"
#include "bindings/support/nanobind.h"

namespace troupe::bindings {

struct RunningCall {
  std::uint64_t sequence = 0;
  bool cancelled = false;
  bool told = false;  // true if it was cancelled since take_cancelled() was called last
  // on the serving thread: nobody else would read the word
  actors::CallerConnection* reads = nullptr;
  PyObject* method = nullptr;  // str, borrowed; of a call on the serving thread
  std::uint64_t number = 0;    // tells it from all others of this process
  bool coroutine = false;      // a step of it: asyncio cancels it, it does not ask
};

/// Makes a call the current thread's, while it lives.
class Running {
 public:
  explicit Running(RunningCall* call) : before_(std::exchange(current_, call)) {}
  ~Running() { current_ = before_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  static RunningCall* current() { return current_; }

 private:
  static inline thread_local RunningCall* current_ = nullptr;
  RunningCall* const before_;
};

/// Returns the RunningCall::number of a call that begins.
std::uint64_t NextCallNumber();
/// Cancels what the call of that number has started and is not over: calls of actors, and tasks,
/// with what those started.
void CancelStartedBy(std::uint64_t number);
/// Reads what the caller of the call that this thread runs has said meanwhile, where nobody else
/// would. Within a wait.
void HearOfRunning();

/// Binds is_cancelled() and running_call().
void BindCallRunning(nanobind::module_& m);

}  // namespace troupe::bindings
