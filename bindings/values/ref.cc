#include "bindings/values/ref.h"

#include <absl/strings/str_format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/caller/reactor.h"
#include "actors/net/fork_guard.h"
#include "actors/net/now.h"
#include "bindings/support/gil.h"
#include "bindings/support/host.h"
#include "bindings/values/channel_object.h"
#include "bindings/values/errors.h"
#include "bindings/values/object_values.h"
#include "bindings/values/ref_pickle.h"
#include "bindings/values/values.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

using actors::Answer;
using actors::CallReactor;
using actors::ForkGuard;

constexpr int kFreeMax = 1024;
PyTypeObject* ref_type = nullptr;
RefObject* free_refs[kFreeMax];
int free_count = 0;

void Dealloc(PyObject* self) {
  RefObject* ref = AsRef(self);
  PyTypeObject* type = Py_TYPE(self);
  Answer* slot = std::exchange(ref->slot, nullptr);
  if (slot != nullptr) slot->Release();
  Py_CLEAR(ref->method);
  PyObject* channel = reinterpret_cast<PyObject*>(std::exchange(ref->channel, nullptr));
  if (free_count < kFreeMax) {
    free_refs[free_count++] = ref;
  } else {
    PyObject_Free(ref);
  }
  Py_XDECREF(channel);  // last: it may run Python
  Py_DECREF(type);
}

PyObject* Hex(PyObject* self, PyObject*) {
  const Answer* slot = AsRef(self)->slot;
  actors::ObjectStore* const store =
      slot->stands_for_object() ? actors::ObjectStore::Existing() : nullptr;
  std::optional<store::ObjectId> name = store != nullptr ? store->NameOf(slot) : std::nullopt;
  if (name) name = store->RemoteNameOf(*name);
  const std::string hex =
      name ? HexOf(*name)
           : CallReactor::Current().incarnation() + absl::StrFormat("%016x", slot->id());
  return PyUnicode_FromStringAndSize(hex.data(), static_cast<Py_ssize_t>(hex.size()));
}

PyObject* Binary(PyObject* self, PyObject*) {
  PyObject* hex = Hex(self, nullptr);
  PyObject* binary =
      hex != nullptr
          ? PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBytes_Type), "fromhex", "O", hex)
          : nullptr;
  Py_XDECREF(hex);
  return binary;
}

PyObject* IsNil(PyObject*, PyObject*) { Py_RETURN_FALSE; }

PyObject* Done(PyObject* self, PyObject*) {
  RefObject* ref = AsRef(self);
  if (!ref->slot->done()) {
    if (!Usable(ref)) return nullptr;
    ref->slot->Ask();
    if (ref->channel != nullptr) {
      actors::Channel& channel = *ref->channel->channel->get();
      channel.Flush();
      CallReactor::Current().Drain(channel);
    }
  }
  return PyBool_FromLong(ref->slot->done());
}

/// `exception`, which is stolen, as it may go through futures and coroutines, which take some
/// exceptions for words to them. A new reference; nullptr: an error is set.
PyObject* ForFuture(PyObject* exception) {
  const bool plain = PyErr_GivenExceptionMatches(exception, PyExc_Exception) &&
                     !PyErr_GivenExceptionMatches(exception, PyExc_StopIteration);
  PyObject* module = plain ? nullptr : PyImport_ImportModule("troupe.exceptions");
  if (module == nullptr) return exception;
  PyObject* made = PyObject_CallMethod(module, "for_future", "O", exception);
  Py_DECREF(module);
  Py_DECREF(exception);
  return made;
}

/// Completes a concurrent.futures.Future with the answer of a Ref.
bool CompleteFuture(RefObject* ref, PyObject* future) {
  PyObject* exception = ExceptionOf(ref);
  PyObject* result = nullptr;
  if (exception == nullptr && !PyErr_Occurred()) {
    PyObject* value = ValueOf(ref);
    if (value != nullptr) result = PyObject_CallMethod(future, "set_result", "(O)", value);
    Py_XDECREF(value);
  }
  if (exception == nullptr && result == nullptr && PyErr_Occurred()) {  // could not be unpickled
    exception = TakeRaised();
  }
  if (exception != nullptr) exception = ForFuture(exception);
  if (exception != nullptr) {
    result = PyObject_CallMethod(future, "set_exception", "O", exception);
    Py_DECREF(exception);
  }
  Py_XDECREF(result);
  return result != nullptr;
}

/// Tells the future only that there is an answer: the result is None.
bool SettleFuture(RefObject*, PyObject* future) {
  PyObject* result = PyObject_CallMethod(future, "set_result", "O", Py_None);
  Py_XDECREF(result);
  return result != nullptr;
}

/// Fails the future with the Ref's exception. The value is left alone.
bool EndFuture(RefObject* ref, PyObject* future) {
  PyObject* exception = ExceptionOf(ref);
  if (exception != nullptr) exception = ForFuture(exception);
  if (exception == nullptr) return PyErr_Occurred() == nullptr && SettleFuture(ref, future);
  PyObject* result = PyObject_CallMethod(future, "set_exception", "O", exception);
  Py_DECREF(exception);
  Py_XDECREF(result);
  return result != nullptr;
}

using Complete = bool (*)(RefObject*, PyObject*);

class FutureCompletion : public actors::Completion {
 public:
  FutureCompletion(PyObject* ref, PyObject* future, Complete complete)
      : ref_(Py_NewRef(ref)), future_(Py_NewRef(future)), complete_(complete) {}
  // Not run: only when the process ends, and then without the GIL; the two objects go with it.
  ~FutureCompletion() override = default;
  void Run() override {
    const PyGILState_STATE gil = EnsureGil();
    if (!complete_(AsRef(ref_), future_)) PyErr_WriteUnraisable(future_);
    Py_CLEAR(ref_);
    Py_CLEAR(future_);
    PyGILState_Release(gil);
  }

 private:
  PyObject* ref_;
  PyObject* future_;
  const Complete complete_;
};

PyObject* NewFuture() {
  static PyObject* future_type = nullptr;
  if (future_type == nullptr) {
    PyObject* module = PyImport_ImportModule("concurrent.futures");
    if (module == nullptr) return nullptr;
    future_type = PyObject_GetAttrString(module, "Future");
    Py_DECREF(module);
    if (future_type == nullptr) return nullptr;
  }
  PyObject* future = PyObject_CallNoArgs(future_type);
  PyObject* running = future != nullptr
                          ? PyObject_CallMethod(future, "set_running_or_notify_cancel", nullptr)
                          : nullptr;
  if (running == nullptr) Py_CLEAR(future);
  Py_XDECREF(running);
  return future;
}

PyObject* FutureOf(PyObject* self, Complete complete) {
  RefObject* ref = AsRef(self);
  if (!Usable(ref)) return nullptr;
  PyObject* future = NewFuture();
  if (future == nullptr) return nullptr;
  bool good = true;
  if (ref->slot->done()) {
    good = complete(ref, future);
  } else {
    if (ref->channel != nullptr) ref->channel->channel->get()->Flush();
    good = CallReactor::Current().OnDone(
        ref->slot, std::make_unique<FutureCompletion>(self, future, complete));
    if (!good) PyErr_SetString(PyExc_RuntimeError, "the interpreter is shutting down");
  }
  if (!good) Py_CLEAR(future);
  return future;
}

PyObject* ToFuture(PyObject* self, PyObject*) { return FutureOf(self, &CompleteFuture); }

PyObject* ToEnd(PyObject* self, PyObject*) { return FutureOf(self, &EndFuture); }

/// Steals `future`, concurrent.futures': one of the running loop, or of the one that is set where
/// none runs.
PyObject* Wrapped(PyObject* future) {
  PyObject* asyncio = future != nullptr ? PyImport_ImportModule("asyncio") : nullptr;
  PyObject* wrapped =
      asyncio != nullptr ? PyObject_CallMethod(asyncio, "wrap_future", "O", future) : nullptr;
  Py_XDECREF(asyncio);
  Py_XDECREF(future);
  return wrapped;
}

PyObject* AsFuture(PyObject* self, PyObject*) { return Wrapped(ToFuture(self, nullptr)); }

/// Calls back with the value, or with the exception as it is.
PyObject* OnCompleted(PyObject* self, PyObject* callback) {
  PyObject* module = PyImport_ImportModule("troupe._base.calls");
  PyObject* done = module != nullptr
                       ? PyObject_CallMethod(module, "on_completed", "OO", self, callback)
                       : nullptr;
  Py_XDECREF(module);
  return done;
}

PyObject* Settled(PyObject* self, PyObject*) { return Wrapped(FutureOf(self, &SettleFuture)); }

PyObject* Cancel(PyObject* self, PyObject* recursive) {
  RefObject* ref = AsRef(self);
  if (!Usable(ref)) return nullptr;
  if (!ref->slot->done() && ref->channel != nullptr) {
    ref->channel->channel->get()->Cancel(ref->slot, recursive == Py_True);
  }
  Py_RETURN_NONE;
}

PyObject* IsEnd(PyObject* self, PyObject*) {
  const actors::Answer* slot = AsRef(self)->slot;
  return PyBool_FromLong(slot->done() && (slot->flags() & actors::kFlagEnd) != 0);
}

PyObject* IsError(PyObject* self, PyObject*) {
  const actors::Answer* slot = AsRef(self)->slot;
  return PyBool_FromLong(slot->done() && (slot->flags() & actors::kErrorFlags) != 0);
}

PyObject* Await(PyObject* self) {
  PyObject* wrapped = AsFuture(self, nullptr);
  PyObject* iterator =
      wrapped != nullptr ? PyObject_CallMethod(wrapped, "__await__", nullptr) : nullptr;
  Py_XDECREF(wrapped);
  return iterator;
}

PyObject* Repr(PyObject* self) {
  RefObject* ref = AsRef(self);
  const char* state = ref->slot->done() ? "done" : "pending";
  PyObject* hex = Hex(self, nullptr);
  if (hex == nullptr) return nullptr;
  PyObject* text = ref->channel == nullptr
                       ? PyUnicode_FromFormat("ObjectRef(%U, %s)", hex, state)
                       : PyUnicode_FromFormat("ObjectRef(%U, %U() of %U, %s)", hex, ref->method,
                                              ref->channel->description, state);
  Py_DECREF(hex);
  return text;
}

// There is one slot per object in this process, so that a Ref that comes back is equal to the one
// that was given away.
Py_hash_t Hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<std::uintptr_t>(AsRef(self)->slot) >> 4);
}

PyObject* Compare(PyObject* self, PyObject* other, int how) {
  if (!IsRef(other) || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((AsRef(self)->slot == AsRef(other)->slot) == (how == Py_EQ));
}

// A Ref never changes: its copy is itself, also where copy.deepcopy() or dataclasses.asdict() meets
// it deep inside.
PyObject* Copy(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyMethodDef methods[] = {
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, "ObjectRef[int], for annotations."},
    {"hex", Hex, METH_NOARGS, "32 hex digits that no other Ref of any process has."},
    {"binary", Binary, METH_NOARGS, "hex() as bytes."},
    {"is_nil", IsNil, METH_NOARGS, "Whether it names nothing: never."},
    {"_on_completed", OnCompleted, METH_O,
     "_on_completed(callback): callback(value or exception) on a thread of the runtime, once it is "
     "there."},
    {"done", Done, METH_NOARGS, "Whether the answer is here; reads what has arrived, never waits."},
    {"future", ToFuture, METH_NOARGS,
     "A concurrent.futures.Future, completed by a background thread. It cannot be cancelled."},
    {"as_future", AsFuture, METH_NOARGS,
     "An asyncio.Future of the running loop, or of the one that is set; to cancel it leaves the "
     "call as it is."},
    {"_ended", ToEnd, METH_NOARGS, "The same, of None or the exception: a value is left unread."},
    {"_settled", Settled, METH_NOARGS, "To be awaited: None once there is an answer."},
    {"_cancel", Cancel, METH_O,
     "_cancel(recursive): asks the actor not to run the call, or to end it, and what it started; "
     "of one of several answers it asks nothing."},
    {"_is_end", IsEnd, METH_NOARGS, "Whether it is what follows the last item of a stream."},
    {"_is_error", IsError, METH_NOARGS, "Whether an error came as the answer; fetches nothing."},
    {"__copy__", Copy, METH_NOARGS, nullptr},
    {"__deepcopy__", Copy, METH_O, nullptr},
    {"__reduce__", ReduceRef, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_repr, reinterpret_cast<void*>(Repr)},
    {Py_tp_hash, reinterpret_cast<void*>(Hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(Compare)},
    {Py_am_await, reinterpret_cast<void*>(Await)},
    {Py_tp_doc, const_cast<char*>("The answer of a call, here or still to come.")},
    {0, nullptr}};
PyType_Spec spec = {"troupe.ObjectRef", sizeof(RefObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

PyObject* NewRef(Answer* slot, CallChannelObject* channel, PyObject* method) {
  RefObject* ref;
  if (free_count > 0) {
    ref = free_refs[--free_count];
    PyObject_Init(reinterpret_cast<PyObject*>(ref), ref_type);
  } else {
    ref = PyObject_New(RefObject, ref_type);
    if (ref == nullptr) {
      slot->Release();
      return nullptr;
    }
  }
  Py_XINCREF(channel);
  Py_XINCREF(method);
  ref->slot = slot;
  ref->channel = channel;
  ref->method = method;
  ref->generation = ForkGuard::generation();
  ref->listed = false;
  return reinterpret_cast<PyObject*>(ref);
}

bool IsRef(PyObject* object) { return Py_TYPE(object) == ref_type; }

bool Usable(RefObject* ref) {
  if (ref->slot->done() || ref->generation == ForkGuard::generation()) return true;
  RaiseRuntimeError(ErrorCode::kConnection,
                    "this Ref was made before a fork and was not done then: its answer goes to the "
                    "parent process\n  make the call again in this process, on a handle made here");
  return false;
}

PyObject* ExceptionOf(RefObject* ref) {
  const std::uint16_t flags = ref->slot->flags();
  if ((flags & actors::kFlagTaskError) != 0) {
    PyObject* none = Py_None;
    return NewTaskError(ref->slot->bytes(), ref->method != nullptr ? ref->method : none,
                        ref->channel != nullptr ? ref->channel->description : none,
                        (flags & actors::kFlagOfArgument) != 0);
  }
  if ((flags & actors::kFlagRuntimeError) != 0) {
    const actors::RuntimeErrorView error = actors::ReadRuntimeError(ref->slot->bytes());
    return NewRuntimeError(error.code, error.text);
  }
  return nullptr;
}

PyObject* ValueOf(RefObject* ref) {
  if ((ref->slot->flags() & (actors::kFlagTaskError | actors::kFlagRuntimeError)) != 0) {
    PyObject* exception = ExceptionOf(ref);
    if (exception != nullptr) {
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
      Py_DECREF(exception);
    }
    return nullptr;
  }
  std::string_view bytes = ref->slot->bytes();
  if ((ref->slot->flags() & actors::kFlagEnd) != 0) Py_RETURN_NONE;  // end of a stream
  if ((ref->slot->flags() & actors::kFlagObjects) != 0) {
    const std::optional<store::ObjectId> id = actors::ReadObjectId(bytes);
    if (id) return ValueOfObject(*id);
  }
  PyObject* value = nullptr;
  if (DecodeValue(&bytes, &value) == Decoded::kMalformed) {
    RaiseRuntimeError(ErrorCode::kInternal, "the actor answered with bytes that are no value");
  }
  return value;
}

bool AwaitRef(RefObject* ref, Instant deadline, bool* timed_out, actors::FailureWatch* failures) {
  if (ref->slot->done()) return true;
  if (!Usable(ref)) return false;
  actors::Channel* channel = ref->channel != nullptr ? ref->channel->channel->get() : nullptr;
  actors::WaitRequest request;
  request.slots = &ref->slot;
  request.slot_count = 1;
  request.channels = &channel;
  request.channel_count = channel != nullptr ? 1 : 0;
  request.deadline = deadline;
  request.failures = failures;
  GilHost host;
  Py_INCREF(ref);  // another thread may drop the last Ref while this one waits
  const actors::WaitResult result = CallReactor::Current().Wait(request, host);
  Py_DECREF(ref);
  if (result == actors::WaitResult::kTimeout && timed_out != nullptr) *timed_out = true;
  return result == actors::WaitResult::kDone;
}

void BindCallRef(nb::module_& m) {
  ref_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (ref_type == nullptr) throw nb::python_error();
  BindRefPickle(m);
  m.attr("Ref") = nb::borrow(reinterpret_cast<PyObject*>(ref_type));
}

}  // namespace troupe::bindings
