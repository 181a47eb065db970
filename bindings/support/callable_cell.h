// A Python callable that the runtime's background thread calls. The Python object that holds the
// cell owns the callable, shows it to the garbage collector if need be, and sets it under the GIL;
// the thread only looks.
#pragma once

#include <Python.h>

#include <memory>
#include <utility>

#include "actors/slots/waiter.h"

namespace troupe::bindings {

struct CallableCell {
  PyObject* callable = nullptr;
};

/// Calls a cell's callable without arguments, if it is still there then; what it raises is reported
/// as unraisable.
class CallCallable : public actors::Completion {
 public:
  explicit CallCallable(std::shared_ptr<CallableCell> cell) : cell_(std::move(cell)) {}
  void Run() override;

 private:
  const std::shared_ptr<CallableCell> cell_;
};

/// Calls a callable without arguments, once; what it raises is reported as unraisable. Made and
/// dropped with the GIL; destroyed without being run or dropped only when the process ends.
class CallOnce : public actors::Completion {
 public:
  explicit CallOnce(PyObject* callable) : callable_(Py_NewRef(callable)) {}
  void Run() override;
  /// Lets go of the callable: the call is not wanted after all.
  void Drop() { Py_CLEAR(callable_); }

 private:
  PyObject* callable_;
};

}  // namespace troupe::bindings
