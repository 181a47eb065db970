// A Scope owns the coroutines a component started, so that shutting down is designed.
//
// The problem: a spawned coroutine whose exception nobody reads vanishes, and an object whose
// coroutines still run must not be destroyed. A Scope records the first exception (and logs every
// one), cancels all of its coroutines at once, and can be waited for until the last has ended.
//
// View: one io_context thread; every call is made on it. Spawn and Cancel return at once, Wait
// suspends. Destroying a Scope cancels what still runs; the coroutines then end on their own, so
// they must not hold references into the Scope's owner unless the owner awaits Wait() first.
// Example:
//   scope.Spawn("accept", AcceptLoop(socket));   // state is passed as parameters, not captured
//   ...
//   scope.Cancel();
//   co_await scope.Wait();
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/async/task.h"
#include "runtime/base/status.h"

namespace troupe::async {

class Scope {
 public:
  /// `name` is whom a log line blames.
  Scope(Executor executor, std::string name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// Starts `task` on the executor (never inside this call). A task spawned after Cancel() is
  /// destroyed without having run.
  void Spawn(std::string_view name, Task<void> task);

  /// Asks every running task to stop (terminal cancellation: its pending operation ends with
  /// operation_aborted). New ones are refused from now on.
  void Cancel();

  /// Suspends until no task runs.
  Task<void> Wait();

  std::size_t running() const;
  /// The first exception that escaped a task, as kInternal with its text; ok when there was none.
  Status first_error() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace troupe::async
