#include "bindings/support/callable_cell.h"

#include "bindings/support/gil.h"

namespace troupe::bindings {

void CallCallable::Run() {
  const PyGILState_STATE gil = EnsureGil();
  PyObject* callable = Py_XNewRef(cell_->callable);
  if (callable != nullptr) {
    PyObject* result = PyObject_CallNoArgs(callable);
    if (result == nullptr) PyErr_WriteUnraisable(callable);
    Py_XDECREF(result);
    Py_DECREF(callable);
  }
  PyGILState_Release(gil);
}

void CallOnce::Run() {
  const PyGILState_STATE gil = EnsureGil();
  PyObject* result = PyObject_CallNoArgs(callable_);
  if (result == nullptr) PyErr_WriteUnraisable(callable_);
  Py_XDECREF(result);
  Drop();
  PyGILState_Release(gil);
}

}  // namespace troupe::bindings
