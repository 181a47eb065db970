#include "bindings/call_channel.h"

#include <absl/strings/str_format.h>

#include <string>
#include <utility>

#include "actors/fork_guard.h"
#include "actors/reactor.h"
#include "bindings/call_errors.h"
#include "bindings/call_host.h"
#include "bindings/call_pickle.h"
#include "bindings/call_ref.h"
#include "bindings/call_values.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

using actors::ByteBuffer;
using actors::CallReactor;
using actors::Channel;
using actors::ForkGuard;

PyTypeObject* channel_type = nullptr;

CallChannelObject* AsChannel(PyObject* object) {
  return reinterpret_cast<CallChannelObject*>(object);
}

bool CheckGeneration(CallChannelObject* self) {
  if (self->generation == ForkGuard::generation()) return true;
  RaiseRuntimeError(ErrorCode::kConnection,
                    "this handle's connection belongs to the parent process, not to this forked "
                    "child\n  look the actor up again in this process");
  return false;
}

// ---- calls -----------------------------------------------------------------------------------

/// "argument 2" or "argument 'x'", for errors.
std::string ArgumentName(Py_ssize_t i, Py_ssize_t positional, PyObject* keywords) {
  if (i < positional) return absl::StrFormat("argument %d", i + 1);
  const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, i - positional));
  return absl::StrFormat("argument '%s'", name != nullptr ? name : "?");
}

/// A Ref as an argument: its value travels. What is encoded already is copied as it is.
bool AppendRefArgument(ByteBuffer& out, RefObject* ref) {
  if (!AwaitRef(ref, Instant::max(), nullptr)) return false;
  const std::uint16_t flags = ref->slot->flags();
  const std::string_view value = (flags & (actors::kFlagTaskError | actors::kFlagRuntimeError)) == 0
                                     ? FrontValue(ref->slot->bytes())
                                     : std::string_view();
  if (!value.empty()) {
    out.Append(value.data(), value.size());
    return true;
  }
  Py_XDECREF(ValueOf(ref));  // raises what the Ref holds
  return false;
}

bool AppendArguments(ByteBuffer& out, PyObject* const* args, Py_ssize_t positional,
                     PyObject* method, PyObject* keywords) {
  const Py_ssize_t count = positional + (keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (IsRef(args[i])) {
      if (!AppendRefArgument(out, AsRef(args[i]))) return false;
    } else if (!EncodeValue(out, args[i])) {
      if (TakeNestedRef()) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError,
                     "%s of %U() holds a Ref inside it\n  pass the Ref as an argument of its own, "
                     "where it is replaced by its value, or put troupe.get(ref) there",
                     ArgumentName(i, positional, keywords).c_str(), method);
      }
      return false;
    }
  }
  return true;
}

bool CheckFrameSize(const ByteBuffer& frame, const actors::CallLimits& limits, PyObject* method) {
  const std::size_t body = frame.size() - actors::kFrameHeadBytes;
  if (actors::PaddedTo8(body) <= limits.frame_bytes_max) return true;
  const char* name = PyUnicode_AsUTF8(method);
  RaiseRuntimeError(
      ErrorCode::kTooLarge,
      absl::StrFormat("the arguments of %s() take %.1f MiB, one call may take %g MiB\n"
                      "  pass large data in parts",
                      name != nullptr ? name : "?", body / 1048576.0,
                      limits.frame_bytes_max / 1048576.0));
  return false;
}

/// Waits, reading all channels, until `channel` may take another call. False: an error is set.
bool AwaitRoom(Channel& channel) {
  actors::Slot* slot = channel.WhenRoom();
  if (slot == nullptr) return true;
  const actors::SlotHold hold(slot);
  Channel* channels[] = {&channel};
  actors::WaitRequest request;
  request.slots = &slot;
  request.slot_count = 1;
  request.channels = channels;
  request.channel_count = 1;
  GilHost host;
  return CallReactor::Current().Wait(request, host) == actors::WaitResult::kDone;
}

PyObject* IssueCall(CallChannelObject* self, PyObject* method, PyObject* const* args,
                    Py_ssize_t positional, PyObject* keywords) {
  const actors::CallLimits limits;
  const Py_ssize_t count = positional + (keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0);
  if (count > limits.args_max) {
    return PyErr_Format(PyExc_ValueError, "%U() was given %zd arguments, %d are allowed", method,
                        count, int{limits.args_max});
  }
  ShapeTable::Shape shape;
  if (!self->shapes->Find(method, keywords, &shape)) return nullptr;
  char space[512];
  ByteBuffer frame(space, sizeof space);
  frame.Extend(actors::kFrameHeadBytes);
  actors::CallHead head;
  head.shape = shape.id;
  head.arg_count = static_cast<std::uint16_t>(count);
  head.keyword_count = static_cast<std::uint16_t>(count - positional);
  frame.AppendValue(head);
  if (shape.named) self->shapes->AppendNames(frame, method, keywords);
  if (!AppendArguments(frame, args, positional, method, keywords)) return nullptr;
  if (!CheckFrameSize(frame, limits, method)) return nullptr;
  Channel& channel = **self->channel;
  actors::Slot* slot = nullptr;
  Channel::Issued issued;
  while ((issued = channel.Issue(frame, shape.named ? actors::kFlagNamed : actors::kFlagNone,
                                 &slot)) == Channel::Issued::kFull) {
    if (!AwaitRoom(channel)) return nullptr;
  }
  if (shape.named) self->shapes->Defined(method, keywords, shape);
  if (issued == Channel::Issued::kOkDrain) CallReactor::Current().Drain(channel);
  return NewRef(slot, self, method);
}

PyObject* Call(PyObject* object, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  CallChannelObject* self = AsChannel(object);
  if (!CheckGeneration(self)) return nullptr;
  if (count < 1 || !PyUnicode_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "call(method_name, *args, **kwargs): method_name is a str");
    return nullptr;
  }
  if (keywords != nullptr && PyTuple_GET_SIZE(keywords) == 0) keywords = nullptr;
  return IssueCall(self, args[0], args + 1, count - 1, keywords);
}

// ---- the rest --------------------------------------------------------------------------------

class DisconnectCompletion : public actors::Completion {
 public:
  explicit DisconnectCompletion(PyObject* callable) : callable_(Py_NewRef(callable)) {}
  ~DisconnectCompletion() override {
    if (callable_ == nullptr) return;
    const PyGILState_STATE gil = PyGILState_Ensure();
    Py_CLEAR(callable_);
    PyGILState_Release(gil);
  }
  void Run() override {
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject* result = PyObject_CallNoArgs(callable_);
    if (result == nullptr) PyErr_WriteUnraisable(callable_);
    Py_XDECREF(result);
    Py_CLEAR(callable_);
    PyGILState_Release(gil);
  }

 private:
  PyObject* callable_;
};

PyObject* Fail(PyObject* object, PyObject* args) {
  int code = 0;
  const char* text = nullptr;
  if (!PyArg_ParseTuple(args, "is:fail", &code, &text)) return nullptr;
  CallChannelObject* self = AsChannel(object);
  if (!CheckGeneration(self)) return nullptr;
  (*self->channel)->Fail(static_cast<ErrorCode>(code), text);
  Py_RETURN_NONE;
}

PyObject* SetOnDisconnect(PyObject* object, PyObject* callable) {
  CallChannelObject* self = AsChannel(object);
  if (!CheckGeneration(self)) return nullptr;
  if (callable != Py_None && !PyCallable_Check(callable)) {
    PyErr_SetString(PyExc_TypeError, "set_on_disconnect(callable or None)");
    return nullptr;
  }
  (*self->channel)
      ->OnDisconnect(callable == Py_None ? nullptr
                                         : std::make_unique<DisconnectCompletion>(callable));
  Py_RETURN_NONE;
}

PyObject* Close(PyObject* object, PyObject*) {
  CallChannelObject* self = AsChannel(object);
  if (self->generation == ForkGuard::generation()) (*self->channel)->Close();
  Py_RETURN_NONE;
}

PyObject* Outstanding(PyObject* object, void*) {
  CallChannelObject* self = AsChannel(object);
  if (!CheckGeneration(self)) return nullptr;
  return PyLong_FromSize_t((*self->channel)->Outstanding());
}

PyObject* Description(PyObject* object, void*) { return Py_NewRef(AsChannel(object)->description); }

PyObject* New(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"unix_path", "description", "grace_s", nullptr};
  const char* path = nullptr;
  PyObject* description = nullptr;
  double grace_s = 5.0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|$Ud:CallChannel", const_cast<char**>(names),
                                   &path, &description, &grace_s)) {
    return nullptr;
  }
  if (!(grace_s >= 0 && grace_s <= 86400)) {
    PyErr_SetString(PyExc_ValueError, "grace_s is a number of seconds from 0 to 86400");
    return nullptr;
  }
  actors::ChannelOptions options;
  if (description != nullptr) {
    const char* text = PyUnicode_AsUTF8(description);
    if (text == nullptr) return nullptr;
    options.description = text;
  }
  options.grace = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(grace_s));
  const actors::CallLimits limits = options.limits;
  const std::string text = options.description;
  const std::string where = path;
  CallReactor& reactor = CallReactor::Current();
  StatusOr<std::shared_ptr<Channel>> channel = [&] {
    nb::gil_scoped_release released;
    return Channel::Connect(reactor, where, std::move(options));
  }();
  if (!channel.ok()) {
    RaiseRuntimeError(ErrorCode::kActorUnavailable, text + ": " + MessageOf(channel.status()));
    return nullptr;
  }
  auto* self = reinterpret_cast<CallChannelObject*>(type->tp_alloc(type, 0));
  if (self == nullptr) {
    (*channel)->Close();
    return nullptr;
  }
  self->channel = new std::shared_ptr<Channel>(*std::move(channel));
  self->shapes = new ShapeTable(limits);
  self->description =
      description != nullptr ? Py_NewRef(description) : PyUnicode_FromString(text.c_str());
  self->generation = ForkGuard::generation();
  return reinterpret_cast<PyObject*>(self);
}

void Dealloc(PyObject* object) {
  CallChannelObject* self = AsChannel(object);
  PyTypeObject* type = Py_TYPE(object);
  // In a forked child the channel's locks may be held for ever by threads that are not there: it is
  // left alone.
  if (self->channel != nullptr && self->generation == ForkGuard::generation()) {
    (*self->channel)->Close();
    delete self->channel;
  }
  delete self->shapes;
  Py_XDECREF(self->description);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* Repr(PyObject* object) {
  return PyUnicode_FromFormat("<CallChannel to %U>", AsChannel(object)->description);
}

PyMethodDef methods[] = {
    {"call", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(Call)),
     METH_FASTCALL | METH_KEYWORDS,
     "call(method_name, *args, **kwargs) -> Ref. Returns at once, or waits while too much is "
     "unsent."},
    {"fail", Fail, METH_VARARGS,
     "fail(code, text): the actor is dead; all outstanding and later calls end with this error."},
    {"set_on_disconnect", SetOnDisconnect, METH_O,
     "set_on_disconnect(callable): run on a background thread when the connection ends."},
    {"close", Close, METH_NOARGS, "Ends the connection; outstanding calls fail."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {
    {"outstanding", Outstanding, nullptr, "Calls without an answer.", nullptr},
    {"description", Description, nullptr, "As errors name it.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(New)},
    {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_repr, reinterpret_cast<void*>(Repr)},
    {Py_tp_doc,
     const_cast<char*>("CallChannel(unix_path, *, description='an actor', grace_s=5.0)")},
    {0, nullptr}};
PyType_Spec spec = {"troupe._native.CallChannel", sizeof(CallChannelObject), 0, Py_TPFLAGS_DEFAULT,
                    slots};

}  // namespace

void BindCallChannel(nb::module_& m) {
  channel_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (channel_type == nullptr) throw nb::python_error();
  m.attr("CallChannel") = nb::borrow(reinterpret_cast<PyObject*>(channel_type));
}

}  // namespace troupe::bindings
