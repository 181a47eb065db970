#include "bindings/caller/channel.h"

#include <memory>
#include <string>
#include <utility>

#include "actors/caller/reactor.h"
#include "actors/net/fork_guard.h"
#include "actors/objects/object_store.h"
#include "bindings/caller/bound.h"
#include "bindings/caller/tasks.h"
#include "bindings/control/control_object.h"
#include "bindings/support/gil.h"
#include "bindings/values/errors.h"
#include "runtime/net/handover.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

using actors::CallReactor;
using actors::Channel;
using actors::ForkGuard;

PyTypeObject* channel_type = nullptr;

CallChannelObject* AsChannel(PyObject* object) {
  return reinterpret_cast<CallChannelObject*>(object);
}

PyObject* Call(PyObject* object, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  CallChannelObject* self = AsChannel(object);
  if (count < 1 || !PyUnicode_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "call(method_name, *args, **kwargs): method_name is a str");
    return nullptr;
  }
  if (keywords != nullptr && PyTuple_GET_SIZE(keywords) == 0) keywords = nullptr;
  return IssueCall(self, {args[0], args[0]}, args + 1, count - 1, keywords);
}

PyObject* Method(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  if (count >= 1 && count <= 3 && PyUnicode_Check(args[0])) {
    return NewBoundCall(AsChannel(object), args[0], count >= 2 ? args[1] : Py_None,
                        count == 3 ? args[2] : Py_None);
  }
  PyErr_SetString(PyExc_TypeError, "method(target, check=None, keeps=None): target is a str");
  return nullptr;
}

PyObject* WhenIdle(PyObject* object, PyObject* callable) {
  CallChannelObject* self = AsChannel(object);
  if (!CheckGeneration(self)) return nullptr;
  auto once = std::make_unique<CallOnce>(callable);
  CallOnce* const unused = once.get();
  std::unique_ptr<actors::Completion> then = std::move(once);
  bool later = false;
  if (const actors::AnswerRef idle = (*self->channel)->WhenIdle()) {
    later = CallReactor::Current().OnDone(idle.get(), std::move(then));
  } else if (actors::ObjectStore* const store = actors::ObjectStore::Existing()) {
    // The answered value lies in its actor's memory, from which it is asked for
    later = store->AfterArrivals(&then);
  }
  if (then != nullptr) unused->Drop();
  return PyBool_FromLong(later);
}

PyObject* Fail(PyObject* object, PyObject* args) {
  int code = 0;
  const char* text = nullptr;
  if (!PyArg_ParseTuple(args, "is:fail", &code, &text)) return nullptr;
  CallChannelObject* self = AsChannel(object);
  if (!CheckGeneration(self)) return nullptr;
  (*self->channel)->Fail(static_cast<ErrorCode>(code), text);
  Py_RETURN_NONE;
}

PyObject* FailWith(PyObject* object, PyObject* exception) {
  CallChannelObject* self = AsChannel(object);
  if (!CheckGeneration(self)) return nullptr;
  if (!PyExceptionInstance_Check(exception)) {
    PyErr_SetString(PyExc_TypeError, "fail_with(exception): an exception instance");
    return nullptr;
  }
  actors::ByteBuffer body;
  AppendException(body, exception, actors::CallLimits().frame_bytes_max);
  (*self->channel)->FailWith(actors::kFlagReply | actors::kFlagTaskError, body.view());
  Py_RETURN_NONE;
}

PyObject* Lose(PyObject* object, PyObject* why) {
  CallChannelObject* self = AsChannel(object);
  const char* text = PyUnicode_Check(why) ? PyUnicode_AsUTF8(why) : nullptr;
  if (text == nullptr) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "lose(why): why is a str");
    return nullptr;
  }
  if (!CheckGeneration(self)) return nullptr;
  (*self->channel)->Lose(text);
  Py_RETURN_NONE;
}

PyObject* SetOnDisconnect(PyObject* object, PyObject* callable) {
  CallChannelObject* self = AsChannel(object);
  if (!CheckGeneration(self)) return nullptr;
  if (callable != Py_None && !PyCallable_Check(callable)) {
    PyErr_SetString(PyExc_TypeError, "set_on_disconnect(callable or None)");
    return nullptr;
  }
  const std::shared_ptr<CallableCell>& cell = *self->on_disconnect;
  PyObject* before = cell->callable;
  cell->callable = callable == Py_None ? nullptr : Py_NewRef(callable);
  (*self->channel)->OnDisconnect(std::make_unique<CallCallable>(cell));
  Py_XDECREF(before);
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

PyObject* IsUsable(PyObject* object, void*) {
  CallChannelObject* self = AsChannel(object);
  if (!CheckGeneration(self)) return nullptr;
  return PyBool_FromLong((*self->channel)->Usable());
}

PyObject* Description(PyObject* object, void*) { return Py_NewRef(AsChannel(object)->description); }

/// Address of an actor on another host, and the credentials of this process there.
struct RemoteArguments {
  const char* host = nullptr;
  int port = 0;
  const char* process = "";
  const char* actor = "";
  PyObject* control = nullptr;
  int aside = 0;
};

bool TakeRemote(const RemoteArguments& remote, actors::RemoteActor* target,
                actors::IdentitySource* identity) {
  const auto id = ActorId::FromHex(remote.actor);
  const auto process = ProcessId::FromHex(remote.process);
  ControlObject* control = nullptr;
  if (!id || !process || remote.port < 1 || remote.port > 65535) {
    PyErr_SetString(PyExc_ValueError,
                    "host goes with port, process and actor (ids of 32 hex digits)");
    return false;
  }
  if (remote.control == nullptr || !nb::try_cast(nb::handle(remote.control), control) ||
      control == nullptr) {
    PyErr_SetString(PyExc_TypeError, "control is this process's ControlClient");
    return false;
  }
  target->host = remote.host;
  target->port = static_cast<std::uint16_t>(remote.port);
  target->process =
      remote.aside != 0 ? net::AsideName(remote.process) : std::string(remote.process);
  target->actor = *id;
  *identity = control->identity();
  return true;
}

PyObject* Aim(PyObject* object, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"unix_path", "host",    "port", "process",
                                "actor",     "control", nullptr};
  CallChannelObject* self = AsChannel(object);
  const char* path = nullptr;
  RemoteArguments remote;
  if (!CheckGeneration(self) ||
      !PyArg_ParseTupleAndKeywords(args, kwargs, "s|$sissO:aim", const_cast<char**>(names), &path,
                                   &remote.host, &remote.port, &remote.process, &remote.actor,
                                   &remote.control)) {
    return nullptr;
  }
  const std::shared_ptr<Channel> channel = *self->channel;
  if (remote.host != nullptr) {
    actors::RemoteActor target;
    actors::IdentitySource identity;
    if (!TakeRemote(remote, &target, &identity)) return nullptr;
    const GilReleased released;
    channel->AimRemote(std::move(target), std::move(identity));
  } else {
    const std::string where = path;
    const GilReleased released;
    // An address that cannot be reached has failed the channel: its calls report the error.
    channel->Aim(where).IgnoreError();
  }
  Py_RETURN_NONE;
}

/// The arguments of CallChannel().
struct NewArguments {
  const char* path = nullptr;  // nullptr: not known yet
  PyObject* description = nullptr;
  RemoteArguments remote;
  actors::ChannelOptions options;

  bool Read(PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"unix_path", "description", "grace_s", "host",        "port",
                                  "process",   "actor",       "control", "pending_max", "tasks",
                                  "ordered",   "aside",       nullptr};
    double grace_s = 5.0;
    Py_ssize_t pending_max = -1;
    PyObject* tasks = nullptr;
    int ordered = 1;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "z|$UdsissOnOpp:CallChannel", const_cast<char**>(names), &path,
            &description, &grace_s, &remote.host, &remote.port, &remote.process, &remote.actor,
            &remote.control, &pending_max, &tasks, &ordered, &remote.aside)) {
      return false;
    }
    if (tasks != nullptr && (options.observer = TaskPoolOf(tasks)) == nullptr) return false;
    if (!(grace_s >= 0 && grace_s <= 86400)) {
      PyErr_SetString(PyExc_ValueError, "grace_s is a number of seconds from 0 to 86400");
      return false;
    }
    const char* text = description != nullptr ? PyUnicode_AsUTF8(description) : nullptr;
    if (text == nullptr && PyErr_Occurred()) return false;
    if (text != nullptr) options.description = text;
    options.grace = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(grace_s));
    options.ordered = ordered != 0;
    if (pending_max > 0) options.outstanding_max = static_cast<std::size_t>(pending_max);
    return true;
  }
};

PyObject* New(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  NewArguments given;
  if (!given.Read(args, kwargs)) return nullptr;
  actors::RemoteActor target;
  actors::IdentitySource identity;
  if (given.remote.host != nullptr && !TakeRemote(given.remote, &target, &identity)) return nullptr;
  const actors::CallLimits limits = given.options.limits;
  const std::string text = given.options.description;
  const std::string where = given.path != nullptr ? given.path : "";
  CallReactor& reactor = CallReactor::Current();
  StatusOr<std::shared_ptr<Channel>> channel = [&] {
    const GilReleased released;
    if (!target.host.empty()) {
      return Channel::Dial(reactor, std::move(target), std::move(identity),
                           std::move(given.options));
    }
    return given.path == nullptr ? Channel::Later(reactor, std::move(given.options))
                                 : Channel::Connect(reactor, where, std::move(given.options));
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
  self->description = given.description != nullptr ? Py_NewRef(given.description)
                                                   : PyUnicode_FromString(text.c_str());
  self->on_disconnect = new std::shared_ptr<CallableCell>(std::make_shared<CallableCell>());
  self->generation = ForkGuard::generation();
  return reinterpret_cast<PyObject*>(self);
}

int Traverse(PyObject* object, visitproc visit, void* arg) {
  CallChannelObject* self = AsChannel(object);
  Py_VISIT(Py_TYPE(object));
  if (self->on_disconnect != nullptr) Py_VISIT((*self->on_disconnect)->callable);
  return 0;
}

int Clear(PyObject* object) {
  CallChannelObject* self = AsChannel(object);
  if (self->on_disconnect != nullptr) Py_CLEAR((*self->on_disconnect)->callable);
  return 0;
}

void Dealloc(PyObject* object) {
  CallChannelObject* self = AsChannel(object);
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  // In a forked child the channel's locks may be held for ever by threads that are not there: it is
  // left alone.
  if (self->channel != nullptr && self->generation == ForkGuard::generation()) {
    (*self->channel)->Close();
    delete self->channel;
  }
  if (self->on_disconnect != nullptr) Py_CLEAR((*self->on_disconnect)->callable);
  delete self->on_disconnect;
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
    {"method", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(Method)), METH_FASTCALL,
     "method(target, check=None, keeps=None) -> a callable: channel.method('f')(*args) is "
     "channel.call('f', *args), faster. "
     "method('f;returns=2') gives a list of two Refs (actors/core/call/call_target.h). "
     "check(count, names) is asked once for "
     "each number of values and tuple of keywords, and raises what such a call is to raise. "
     "`keeps` lives as long as it."},
    {"when_idle", WhenIdle, METH_O,
     "when_idle(callable): calls it on a background thread once no call is without an answer, or "
     "it is time to ask again. "
     "False: none is now."},
    {"fail", Fail, METH_VARARGS,
     "fail(code, text): the actor is dead; all outstanding and later calls end with this error."},
    {"fail_with", FailWith, METH_O, "fail_with(exception): the same with this as the error."},
    {"lose", Lose, METH_O,
     "lose(why): the process is gone, the actor may not be: calls end as NOT_SENT or "
     "MAYBE_EXECUTED."},
    {"aim", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(Aim)),
     METH_VARARGS | METH_KEYWORDS,
     "aim(unix_path), aim('', host=, port=, process=, actor=, control=): of a CallChannel(None), "
     "where "
     "the actor is."},
    {"set_on_disconnect", SetOnDisconnect, METH_O,
     "set_on_disconnect(callable): run on a background thread when the connection ends."},
    {"close", Close, METH_NOARGS, "Ends the connection; outstanding calls fail."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {
    {"outstanding", Outstanding, nullptr, "Calls without an answer.", nullptr},
    {"usable", IsUsable, nullptr, "Whether a call made now may still be answered by the actor.",
     nullptr},
    {"description", Description, nullptr, "As errors name it.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(New)},
    {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(Clear)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_repr, reinterpret_cast<void*>(Repr)},
    {Py_tp_doc,
     const_cast<char*>("CallChannel(unix_path, *, description='an actor', grace_s=5.0, "
                       "pending_max=-1); to another "
                       "host: CallChannel('', host=, port=, process=, actor=, control=), which "
                       "returns at once; to one that is not there yet: CallChannel(None); for "
                       "tasks: tasks=a TaskPool; "
                       "ordered=False: a call may overtake one whose arguments are to come")},
    {0, nullptr}};
PyType_Spec spec = {"troupe._native.CallChannel", sizeof(CallChannelObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

void BindCallChannel(nb::module_& m) {
  channel_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (channel_type == nullptr) throw nb::python_error();
  if (!InitBoundCall()) throw nb::python_error();
  m.attr("CallChannel") = nb::borrow(reinterpret_cast<PyObject*>(channel_type));
}

}  // namespace troupe::bindings
