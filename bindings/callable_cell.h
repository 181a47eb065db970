// A Python callable that the runtime's background thread calls. The Python object that holds the cell owns the callable,
// shows it to the garbage collector if need be, and sets it under the GIL; the thread only looks.
#pragma once

#include <Python.h>

#include <memory>
#include <utility>

#include "actors/waiter.h"

namespace troupe::bindings {

struct CallableCell {
  PyObject* callable = nullptr;
};

/// Calls it without arguments, if it is still there then; what it raises is reported as unraisable.
class CallCallable : public actors::Completion {
 public:
  explicit CallCallable(std::shared_ptr<CallableCell> cell) : cell_(std::move(cell)) {}
  void Run() override;

 private:
  const std::shared_ptr<CallableCell> cell_;
};

}  // namespace troupe::bindings
