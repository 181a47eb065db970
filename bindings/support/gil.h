// Letting go of the GIL to block, and taking it back: what every wait of the extension does.
//
// A thread that comes back while the interpreter ends (a daemon thread at the exit of the process)
// waits for the end of the process. Python 3.11 to 3.13 would end it by pthread_exit, whose
// unwinding of C++ frames is std::terminate: the process aborted after all it did was done. (3.14
// makes it wait too.)
#pragma once

#include <Python.h>

#include <exception>

namespace troupe::bindings {

/// PyEval_RestoreThread; does not return while the interpreter ends.
void RetakeGil(PyThreadState* state);
/// PyGILState_Ensure, for threads that are not Python's; does not return while the interpreter
/// ends.
PyGILState_STATE EnsureGil();
/// Waits for the end of the process on a thread that came back, while the interpreter ends, inside
/// Python code that C++ had called. It is the first of nanobind's translators of exceptions: they
/// get that thread's unwinding as an empty exception, and the next would rethrow it.
void AwaitTheEndWhereUnwound(const std::exception_ptr& caught, void* payload);

/// Without the GIL while it lives. On the thread that holds it.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() { RetakeGil(state_); }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace troupe::bindings
