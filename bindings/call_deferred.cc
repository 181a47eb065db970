#include "bindings/call_deferred.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "bindings/call_answer.h"
#include "bindings/call_executor.h"

namespace troupe::bindings {
namespace {

/// The done-callback of a future: answers one call, once. Dropped without being called, it answers
/// that the call was cancelled.
struct DeferredReply {
  PyObject head;
  std::shared_ptr<actors::Peer>* peer;
  std::uint64_t sequence;
  PyObject* method_name;
  AnswerForm form;
  bool answered;
};

PyTypeObject* deferred_type = nullptr;

/// Answers with `result` (stolen), or with the error that is set.
void Answer(DeferredReply* self, PyObject* result) {
  if (std::exchange(self->answered, true)) {
    Py_XDECREF(result);
    return;
  }
  actors::ByteBuffer reply;
  reply.Extend(actors::kFrameHeadBytes);
  std::uint16_t flags = actors::kFlagReply;
  const actors::CallLimits limits;
  const AnswerTo to{**self->peer, self->sequence, self->method_name, self->form, limits};
  WriteAnswer(to, result, reply, &flags);
  (*self->peer)->ReplyDeferred(self->sequence, flags, reply);
}

PyObject* OnDone(PyObject* object, PyObject* args, PyObject*) {
  PyObject* future = nullptr;
  if (!PyArg_ParseTuple(args, "O:DeferredReply", &future)) return nullptr;
  Answer(reinterpret_cast<DeferredReply*>(object), PyObject_CallMethod(future, "result", nullptr));
  Py_RETURN_NONE;
}

void Dealloc(PyObject* object) {
  auto* self = reinterpret_cast<DeferredReply*>(object);
  PyTypeObject* type = Py_TYPE(object);
  if (!self->answered) {
    PyErr_SetString(PyExc_RuntimeError, "the actor ended before this call did");
    Answer(self, nullptr);
  }
  delete self->peer;
  Py_XDECREF(self->method_name);
  type->tp_free(object);
  Py_DECREF(type);
}

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(OnDone)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
                       {0, nullptr}};
PyType_Spec spec = {"troupe._native._DeferredReply", sizeof(DeferredReply), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

DeferredReply* NewDeferred(actors::Peer& peer, std::uint64_t sequence, PyObject* method) {
  auto* self = reinterpret_cast<DeferredReply*>(deferred_type->tp_alloc(deferred_type, 0));
  if (self == nullptr) return nullptr;
  self->peer = new std::shared_ptr<actors::Peer>(peer.shared_from_this());
  self->sequence = sequence;
  self->method_name = PyObject_GetAttrString(method, "__name__");
  if (self->method_name == nullptr || !PyUnicode_Check(self->method_name)) {
    PyErr_Clear();
    Py_XSETREF(self->method_name, PyUnicode_FromString("a method"));
  }
  peer.Defer();
  return self;
}

/// Steals `future`. An error that is set becomes the answer, so that the call is answered in any
/// case.
void AnswerWhenDone(DeferredReply* reply, PyObject* future) {
  PyObject* added =
      future != nullptr ? PyObject_CallMethod(future, "add_done_callback", "O", reply) : nullptr;
  if (added == nullptr) Answer(reply, nullptr);
  Py_XDECREF(added);
  Py_XDECREF(future);
  Py_DECREF(reply);
}

/// The event loop's thread. asyncio lets SystemExit and KeyboardInterrupt of a coroutine out of
/// run_forever; they are that call's error (its future has them), and the loop goes on.
PyObject* RunLoop(PyObject* loop, PyObject*) {
  while (true) {
    PyObject* stopped = PyObject_CallMethod(loop, "run_forever", nullptr);
    if (stopped != nullptr) return stopped;
    if (!PyErr_ExceptionMatches(PyExc_SystemExit) &&
        !PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
      return nullptr;
    }
    PyErr_Clear();
  }
}

PyMethodDef run_loop_def = {"run_loop", &RunLoop, METH_NOARGS, nullptr};

}  // namespace

bool IsCoroutineFunction(PyObject* method) {
  PyObject* function = PyMethod_Check(method) ? PyMethod_GET_FUNCTION(method) : method;
  if (!PyFunction_Check(function)) return false;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  return (code->co_flags & CO_COROUTINE) != 0;
}

bool InitDeferred() {
  if (deferred_type == nullptr) {
    deferred_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  }
  return deferred_type != nullptr;
}

PyObject* PyExecutor::Pool() {
  if (pool_ != nullptr) return pool_;
  PyObject* module = PyImport_ImportModule("concurrent.futures");
  if (module == nullptr) return nullptr;
  pool_ = PyObject_CallMethod(module, "ThreadPoolExecutor", "is", concurrency_, "actor");
  Py_DECREF(module);
  return pool_;
}

PyObject* PyExecutor::Loop() {
  if (loop_ != nullptr) return loop_;
  PyObject* asyncio = PyImport_ImportModule("asyncio");
  PyObject* threading = asyncio != nullptr ? PyImport_ImportModule("threading") : nullptr;
  PyObject* loop =
      threading != nullptr ? PyObject_CallMethod(asyncio, "new_event_loop", nullptr) : nullptr;
  PyObject* run = loop != nullptr ? PyCFunction_New(&run_loop_def, loop) : nullptr;
  PyObject* type = run != nullptr ? PyObject_GetAttrString(threading, "Thread") : nullptr;
  PyObject* kwargs = type != nullptr ? Py_BuildValue("{sOsssO}", "target", run, "name",
                                                     "actor-asyncio", "daemon", Py_True)
                                     : nullptr;
  PyObject* none = PyTuple_New(0);
  if (kwargs != nullptr && none != nullptr) loop_thread_ = PyObject_Call(type, none, kwargs);
  PyObject* started =
      loop_thread_ != nullptr ? PyObject_CallMethod(loop_thread_, "start", nullptr) : nullptr;
  if (started != nullptr) loop_ = Py_NewRef(loop);
  Py_XDECREF(started);
  Py_XDECREF(none);
  Py_XDECREF(kwargs);
  Py_XDECREF(type);
  Py_XDECREF(run);
  Py_XDECREF(loop);
  Py_XDECREF(threading);
  Py_XDECREF(asyncio);
  return loop_;
}

bool PyExecutor::SubmitToPool(PyObject* method, PyObject* const* args, Py_ssize_t positional,
                              PyObject* keywords, actors::Peer& peer, std::uint64_t sequence) {
  PyObject* pool = Pool();
  PyObject* submit = pool != nullptr ? PyObject_GetAttrString(pool, "submit") : nullptr;
  if (submit == nullptr) return false;
  const Py_ssize_t keyword_count = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
  PyObject* positionals = PyTuple_New(positional + 1);
  PyObject* named = PyDict_New();
  bool good = positionals != nullptr && named != nullptr;
  if (good) {
    PyTuple_SET_ITEM(positionals, 0, Py_NewRef(method));
    for (Py_ssize_t i = 0; i < positional; ++i) {
      PyTuple_SET_ITEM(positionals, i + 1, Py_NewRef(args[i]));
    }
  }
  for (Py_ssize_t i = 0; good && i < keyword_count; ++i) {
    good = PyDict_SetItem(named, PyTuple_GET_ITEM(keywords, i), args[positional + i]) == 0;
  }
  DeferredReply* reply = good ? NewDeferred(peer, sequence, method) : nullptr;
  if (reply != nullptr) AnswerWhenDone(reply, PyObject_Call(submit, positionals, named));
  Py_XDECREF(named);
  Py_XDECREF(positionals);
  Py_DECREF(submit);
  return reply != nullptr;
}

bool PyExecutor::SubmitCoroutine(PyObject* coroutine, actors::Peer& peer, std::uint64_t sequence) {
  PyObject* loop = Loop();
  DeferredReply* reply = loop != nullptr ? NewDeferred(peer, sequence, coroutine) : nullptr;
  if (reply == nullptr) return false;
  PyObject* asyncio = PyImport_ImportModule("asyncio");
  AnswerWhenDone(
      reply, asyncio != nullptr
                 ? PyObject_CallMethod(asyncio, "run_coroutine_threadsafe", "OO", coroutine, loop)
                 : nullptr);
  Py_XDECREF(asyncio);
  return true;
}

}  // namespace troupe::bindings
