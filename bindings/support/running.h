// The call that the current thread runs: what get_runtime_context().is_canceled() asks. Needs the GIL.
#pragma once

#include <cstdint>
#include <utility>

#include "actors/server/caller_connection.h"
#include "bindings/support/nanobind.h"

namespace troupe::bindings {

struct RunningCall {
  std::uint64_t sequence = 0;
  bool cancelled = false;
  bool told = false;              // that it is, since take_cancelled() was asked last
  actors::CallerConnection* reads = nullptr;  // on the serving thread: nobody else would read the word
  PyObject* method = nullptr;     // str, borrowed; of a call on the serving thread
  std::uint64_t number = 0;       // of a call on the serving thread: tells it from all others of this process
  bool recursive = false;         // cancelled with what it started
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

/// Binds is_cancelled() and running_call().
void BindCallRunning(nanobind::module_& m);

}  // namespace troupe::bindings
