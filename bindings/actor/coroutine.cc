#include "bindings/actor/coroutine.h"

#include <utility>
#include <vector>

#include "bindings/actor/loop_calls.h"

namespace troupe::bindings {

struct CallCoroutine {
  PyObject head;
  PyObject* inner;
  DeferredCall* call;  // nullptr: answered, and no longer in the list
  std::shared_ptr<LoopCalls>* calls;
  // owned until the call is answered; not visited: to the collector it is held from outside
  PyObject* task;
  CallCoroutine* previous;
  CallCoroutine* next;
  bool stepped;
};

namespace {

PyTypeObject* coroutine_type = nullptr;

CallCoroutine* As(PyObject* object) { return reinterpret_cast<CallCoroutine*>(object); }

/// Attributes the objects that a step starts to its call; to no call once that is answered.
class StepOf {
 public:
  explicit StepOf(CallCoroutine* self)
      : running_(self->call != nullptr ? &self->call->running() : nullptr) {}

 private:
  const Running running_;
};

/// Before a step. True: it is the first.
bool Step(CallCoroutine* self) {
  if (std::exchange(self->stepped, true)) return false;
  (*self->calls)->Stepping();
  return true;
}

DeferredCallPtr TakeCall(CallCoroutine* self) {
  if (self->call == nullptr) return nullptr;
  CallCoroutine*& before =
      self->previous != nullptr ? self->previous->next : (*self->calls)->coroutines().first;
  before = self->next;
  if (self->next != nullptr) self->next->previous = self->previous;
  return DeferredCallPtr(std::exchange(self->call, nullptr));
}

/// The inner coroutine is over; steals `result`, nullptr: with the error that is set.
void End(CallCoroutine* self, PyObject* result, bool first_step) {
  PyObject* const task = std::exchange(self->task, nullptr);
  DeferredCallPtr call = TakeCall(self);
  if (call != nullptr) {
    (*self->calls)->Ended(std::move(call), result, first_step);
  } else {
    Py_XDECREF(result);
  }
  PyErr_Clear();
  Py_XDECREF(task);
}

PySendResult Send(PyObject* object, PyObject* argument, PyObject** result) {
  CallCoroutine* self = As(object);
  const bool first_step = Step(self);
  PyObject* value = nullptr;
  PySendResult sent = PYGEN_ERROR;
  {
    const StepOf step(self);
    sent = PyIter_Send(self->inner, argument, &value);
  }
  if (sent == PYGEN_NEXT) {
    (*self->calls)->Waits(first_step);
    *result = value;
    return PYGEN_NEXT;
  }
  Py_INCREF(object);  // the answering code may release the task
  End(self, sent == PYGEN_RETURN ? value : nullptr, first_step);
  Py_DECREF(object);
  *result = Py_NewRef(Py_None);
  return PYGEN_RETURN;
}

PyObject* SendMethod(PyObject* object, PyObject* argument) {
  PyObject* result = nullptr;
  if (Send(object, argument, &result) == PYGEN_NEXT) return result;
  Py_XDECREF(result);
  PyErr_SetNone(PyExc_StopIteration);
  return nullptr;
}

PyObject* Next(PyObject* object) { return SendMethod(object, Py_None); }

PyObject* Throw(PyObject* object, PyObject* args) {
  CallCoroutine* self = As(object);
  const bool first_step = Step(self);
  PyObject* method = PyObject_GetAttrString(self->inner, "throw");
  PyObject* yielded = nullptr;
  if (method != nullptr) {
    const StepOf step(self);
    yielded = PyObject_Call(method, args, nullptr);
  }
  Py_XDECREF(method);
  if (yielded != nullptr) {
    (*self->calls)->Waits(first_step);
    return yielded;
  }
  PyObject* value = nullptr;
  if (PyErr_ExceptionMatches(PyExc_StopIteration)) {
    PyObject* type = nullptr;
    PyObject* stop = nullptr;
    PyObject* traceback = nullptr;
    PyErr_Fetch(&type, &stop, &traceback);
    PyErr_NormalizeException(&type, &stop, &traceback);
    value = PyObject_GetAttrString(stop, "value");
    Py_XDECREF(type);
    Py_XDECREF(stop);
    Py_XDECREF(traceback);
  }
  Py_INCREF(object);
  End(self, value, first_step);
  Py_DECREF(object);
  PyErr_SetNone(PyExc_StopIteration);
  return nullptr;
}

PyObject* Close(PyObject* object, PyObject*) {
  return PyObject_CallMethod(As(object)->inner, "close", nullptr);
}

PyObject* GetAttribute(PyObject* object, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(object, name);
  if (own != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  return PyObject_GetAttr(As(object)->inner, name);
}

PyObject* Self(PyObject* object) { return Py_NewRef(object); }

int Traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(As(object)->inner);
  return 0;
}

void Dealloc(PyObject* object) {
  CallCoroutine* self = As(object);
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  TakeCall(self).reset();  // without an answer: the actor is over
  Py_CLEAR(self->inner);
  delete self->calls;
  type->tp_free(object);
  Py_DECREF(type);
}

PyMethodDef methods[] = {{"send", SendMethod, METH_O, nullptr},
                         {"throw", Throw, METH_VARARGS, nullptr},
                         {"close", Close, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
                       {Py_tp_methods, methods},
                       {Py_tp_getattro, reinterpret_cast<void*>(GetAttribute)},
                       {Py_tp_iter, reinterpret_cast<void*>(Self)},
                       {Py_tp_iternext, reinterpret_cast<void*>(Next)},
                       {Py_am_await, reinterpret_cast<void*>(Self)},
                       {Py_am_send, reinterpret_cast<void*>(Send)},
                       {0, nullptr}};
PyType_Spec spec = {"troupe._native._CallCoroutine", sizeof(CallCoroutine), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

PyObject* NewCallCoroutine(PyObject* inner, DeferredCallPtr& call,
                           const std::shared_ptr<LoopCalls>& calls) {
  auto* self = reinterpret_cast<CallCoroutine*>(coroutine_type->tp_alloc(coroutine_type, 0));
  if (self == nullptr) {
    Py_DECREF(inner);
    return nullptr;
  }
  self->inner = inner;
  self->call = call.release();
  self->calls = new std::shared_ptr<LoopCalls>(calls);
  self->task = nullptr;
  self->previous = nullptr;
  self->next = std::exchange(calls->coroutines().first, self);
  if (self->next != nullptr) self->next->previous = self;
  return reinterpret_cast<PyObject*>(self);
}

void SetTask(PyObject* coroutine, PyObject* task) {
  // else it is over already: a loop may be eager
  if (As(coroutine)->call != nullptr) As(coroutine)->task = Py_NewRef(task);
}

void LetTasksGo(CoroutineList& coroutines) {
  std::vector<PyObject*> tasks;
  for (CallCoroutine* each = coroutines.first; each != nullptr; each = each->next) {
    tasks.push_back(std::exchange(each->task, nullptr));
  }
  for (PyObject* const task : tasks) Py_XDECREF(task);
}

bool CancelTask(CoroutineList& coroutines, const actors::CallerConnection& peer,
                std::uint64_t sequence, bool recursive) {
  for (CallCoroutine* each = coroutines.first; each != nullptr; each = each->next) {
    if (!each->call->Is(peer, sequence) || each->task == nullptr) continue;
    each->call->running().cancelled = true;
    if (recursive) CancelStartedBy(each->call->running().number);
    PyObject* cancelled = PyObject_CallMethod(each->task, "cancel", nullptr);
    if (cancelled == nullptr) PyErr_WriteUnraisable(each->task);
    Py_XDECREF(cancelled);
    return true;
  }
  return false;
}

bool InitCallCoroutine() {
  if (coroutine_type == nullptr) {
    coroutine_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  }
  return coroutine_type != nullptr;
}

}  // namespace troupe::bindings
