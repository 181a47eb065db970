#include "bindings/values/errors.h"

#include <string>

#include "bindings/values/pickle.h"
#include "bindings/values/values.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

constexpr Py_ssize_t kTextMax = 64 << 10;

PyObject* error_factory = nullptr;
PyObject* task_error_factory = nullptr;

void SetFactory(PyObject** place, nb::object factory) {
  PyObject* before = *place;
  *place = factory.is_none() ? nullptr : factory.release().ptr();
  Py_XDECREF(before);
}

PyObject* Text(std::string_view text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

PyObject* BuiltinFor(ErrorCode code) {
  switch (code) {
    case ErrorCode::kTimeout:
      return PyExc_TimeoutError;
    case ErrorCode::kInvalid:
    case ErrorCode::kTooLarge:
      return PyExc_ValueError;
    case ErrorCode::kConnection:
    case ErrorCode::kActorDied:
    case ErrorCode::kActorUnavailable:
    case ErrorCode::kMaybeExecuted:
    case ErrorCode::kNotSent:
      return PyExc_ConnectionError;
    default:
      return PyExc_RuntimeError;
  }
}

/// `object`'s text, at most kTextMax characters, or a note that it has none. A new reference.
PyObject* ShortText(PyObject* object) {
  PyObject* text = PyObject_Str(object);
  if (text == nullptr) {
    PyErr_Clear();
    return PyUnicode_FromString("<no text: str() of the exception raised>");
  }
  if (PyUnicode_GET_LENGTH(text) <= kTextMax) return text;
  PyObject* cut = PyUnicode_Substring(text, 0, kTextMax);
  Py_DECREF(text);
  return cut;
}

PyObject* TypeName(PyObject* exception) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(exception));
  PyObject* module = PyObject_GetAttrString(type, "__module__");
  PyObject* name = PyObject_GetAttrString(type, "__qualname__");
  PyObject* full = nullptr;
  if (module != nullptr && name != nullptr) {
    full = PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "builtins") != 0
               ? PyUnicode_FromFormat("%U.%U", module, name)
               : Py_NewRef(name);
  }
  Py_XDECREF(module);
  Py_XDECREF(name);
  PyErr_Clear();
  return full != nullptr ? full : PyUnicode_FromString(Py_TYPE(exception)->tp_name);
}

/// traceback.format_exception(exception) joined; its last kTextMax characters.
PyObject* TracebackText(PyObject* exception) {
  PyObject* module = PyImport_ImportModule("traceback");
  PyObject* lines =
      module != nullptr ? PyObject_CallMethod(module, "format_exception", "O", exception) : nullptr;
  PyObject* nothing = PyUnicode_FromString("");
  PyObject* text =
      lines != nullptr && nothing != nullptr ? PyUnicode_Join(nothing, lines) : nullptr;
  Py_XDECREF(lines);
  Py_XDECREF(module);
  if (text == nullptr) {
    PyErr_Clear();
    return nothing;
  }
  Py_XDECREF(nothing);
  const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
  if (length <= kTextMax) return text;
  PyObject* cut = PyUnicode_Substring(text, length - kTextMax, length);
  Py_DECREF(text);
  return cut;
}

/// Returns the object to pickle for the exception, made by `how`, a function of the package's
/// module `where`. nullptr: an error is set.
PyObject* AsCarried(PyObject* exception, const char* where, const char* how) {
  PyObject* module = PyImport_ImportModule(where);
  PyObject* made = module != nullptr ? PyObject_CallMethod(module, how, "O", exception) : nullptr;
  Py_XDECREF(module);
  return made;
}

/// False: nothing is appended.
bool AppendCarried(actors::ByteBuffer& out, PyObject* carried, std::size_t bytes_max) {
  const std::size_t before = out.size();
  const bool good =
      carried != nullptr && EncodeValue(out, carried) && out.size() - before <= bytes_max;
  Py_XDECREF(carried);
  if (good) return true;
  PyErr_Clear();
  static_cast<void>(TakeNestedRef());  // a Ref in it is no matter of the value that follows
  out.Truncate(before);
  return false;
}

void AppendText(actors::ByteBuffer& out, PyObject* text) {
  if (text == nullptr || !EncodeValue(out, text)) {
    PyErr_Clear();
    EncodeValue(out, Py_None);
  }
  Py_XDECREF(text);
}

/// Without a factory: the exception itself with the remote traceback as a note.
PyObject* DefaultTaskError(PyObject* exception, PyObject* type_name, PyObject* text,
                           PyObject* traceback) {
  if (exception == Py_None) {
    PyObject* message = PyUnicode_FromFormat("%S: %S\n%S", type_name, text, traceback);
    PyObject* made =
        message != nullptr ? PyObject_CallOneArg(PyExc_RuntimeError, message) : nullptr;
    Py_XDECREF(message);
    return made;
  }
  PyObject* done = PyObject_CallMethod(exception, "add_note", "O", traceback);
  Py_XDECREF(done);
  PyErr_Clear();
  return Py_NewRef(exception);
}

}  // namespace

PyObject* NewRuntimeError(ErrorCode code, std::string_view text) {
  PyObject* message = Text(text);
  if (message == nullptr) return nullptr;
  PyObject* made = error_factory != nullptr
                       ? PyObject_CallFunction(error_factory, "iO", static_cast<int>(code), message)
                       : PyObject_CallOneArg(BuiltinFor(code), message);
  Py_DECREF(message);
  return made;
}

void RaiseRuntimeError(ErrorCode code, std::string_view text) {
  PyObject* error = NewRuntimeError(code, text);
  if (error == nullptr) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_DECREF(error);
}

void RaiseStatus(const Status& status) {
  RaiseRuntimeError(ErrorCodeOf(status), MessageOf(status));
}

PyObject* TakeRaised() {
  PyObject* type = nullptr;
  PyObject* exception = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &exception, &traceback);
  PyErr_NormalizeException(&type, &exception, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(exception, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return exception;
}

PyObject* AppendRaised(actors::ByteBuffer& out, std::size_t bytes_max) {
  PyObject* const exception = TakeRaised();
  AppendException(out, exception, bytes_max);
  return exception;
}

void AppendException(actors::ByteBuffer& out, PyObject* exception, std::size_t bytes_max) {
  if (!AppendCarried(out, AsCarried(exception, "troupe._base.exception_pickles", "carried"),
                     bytes_max / 2) &&
      !AppendCarried(out, AsCarried(exception, "troupe._code.failures", "without_what_cannot_be"),
                     bytes_max / 2)) {
    EncodeValue(out, Py_None);
  }
  AppendText(out, TypeName(exception));
  AppendText(out, ShortText(exception));
  AppendText(out, TracebackText(exception));
}

PyObject* NewTaskError(std::string_view body, PyObject* method, PyObject* description,
                       bool of_argument) {
  PyObject* parts[4] = {nullptr, nullptr, nullptr, nullptr};
  for (PyObject*& part : parts) {
    const Decoded decoded = DecodeValue(&body, &part);
    if (decoded == Decoded::kOk) continue;
    // An exception class that this side cannot rebuild: type name and text are what is left of it.
    PyErr_Clear();
    part = Py_NewRef(Py_None);
    if (decoded == Decoded::kMalformed) break;
  }
  for (PyObject*& part : parts) {
    if (part == nullptr) part = Py_NewRef(Py_None);
  }
  if (!PyExceptionInstance_Check(parts[0])) Py_SETREF(parts[0], Py_NewRef(Py_None));
  PyObject* made = task_error_factory != nullptr
                       ? PyObject_CallFunctionObjArgs(task_error_factory, parts[0], parts[1],
                                                      parts[2], parts[3], method, description,
                                                      of_argument ? Py_True : Py_False, nullptr)
                       : DefaultTaskError(parts[0], parts[1], parts[2], parts[3]);
  for (PyObject* part : parts) Py_DECREF(part);
  return made;
}

void BindCallErrors(nb::module_& m) {
  m.def(
      "set_error_factory", [](nb::object f) { SetFactory(&error_factory, std::move(f)); },
      nb::arg("factory").none(),
      "factory(code: int, text: str) -> exception, for the runtime's own errors.");
  m.def(
      "set_task_error_factory", [](nb::object f) { SetFactory(&task_error_factory, std::move(f)); },
      nb::arg("factory").none(),
      "factory(exception_or_None, type_name, text, traceback_text, method_name, description, "
      "of_argument) -> "
      "the exception that get() raises when a method raised, or what made an argument of it, which "
      "then did not run.");
}

}  // namespace troupe::bindings
