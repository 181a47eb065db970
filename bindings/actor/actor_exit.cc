#include "bindings/actor/actor_exit.h"

#include "bindings/values/errors.h"

namespace troupe::bindings {
namespace {

/// The error that is set, normalized; it stays set. A new reference.
PyObject* Raised() {
  PyObject* const exception = TakeRaised();
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exception))), Py_NewRef(exception),
                PyException_GetTraceback(exception));
  return exception;
}

/// True if the interpreter would end with 0 by it.
bool IsZero(PyObject* code) {
  return code == Py_None || (PyLong_Check(code) && PyObject_IsTrue(code) == 0);
}

}  // namespace

ActorExit::How ActorExit::HowRaised() {
  if (!PyErr_ExceptionMatches(PyExc_SystemExit)) return How::kStays;
  PyObject* const exception = Raised();
  PyObject* const code = reinterpret_cast<PySystemExitObject*>(exception)->code;
  const How how = code == nullptr || IsZero(code) ? How::kAnswers : How::kCrashes;
  Py_DECREF(exception);
  return how;
}

void ActorExit::KeepRaised() { Keep(Raised()); }

}  // namespace troupe::bindings
