// The GIL around a wait (actors/waiter.h): let go of to block, taken back after.
#pragma once

#include <Python.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "actors/fork_guard.h"
#include "actors/waiter.h"
#include "bindings/gil.h"

namespace troupe::bindings {

/// Python runs signal handlers on the main thread alone, which is the process's first.
inline bool OnMainThread() {
  struct Known {
    std::uint32_t generation = 0;
    bool main = false;
  };
  static thread_local Known known;  // two system calls per wait are too many
  if (known.generation != actors::ForkGuard::generation()) {
    known = {actors::ForkGuard::generation(), ::syscall(SYS_gettid) == ::getpid()};
  }
  return known.main;
}

template <class Base = actors::WaitHost>
class GilHostOf : public Base {
 public:
  void Suspend() override { state_ = PyEval_SaveThread(); }
  void Resume() override { RetakeGil(state_); }
  /// True: a signal handler raised, and its exception is set.
  bool Interrupted() override { return PyErr_CheckSignals() != 0; }
  bool HandlesSignals() const override { return OnMainThread(); }

 private:
  PyThreadState* state_ = nullptr;
};
using GilHost = GilHostOf<>;

}  // namespace troupe::bindings
