#include "bindings/caller/stream_object.h"

#include <utility>

#include "actors/core/call/item_window.h"
#include "actors/net/fork_guard.h"
#include "actors/tasks/task_pool.h"
#include "bindings/caller/channel.h"
#include "bindings/values/ref.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

struct RefStream {
  PyObject head;
  RefObject* answer;  // the channel and method are the items'
  std::shared_ptr<actors::ItemStream>* items;
  actors::TakenReport* report;
  bool of_task;  // a task's process may change
};

PyTypeObject* base_type = nullptr;
PyObject* stream_type = nullptr;  // type of a streaming call's result: by default the one above

RefStream* As(PyObject* object) { return reinterpret_cast<RefStream*>(object); }

PyObject* GetAnswer(PyObject* object, PyObject*) {
  return Py_NewRef(reinterpret_cast<PyObject*>(As(object)->answer));
}

/// The next item's Ref, or the end's; nullptr with an error set.
PyObject* Front(PyObject* object, PyObject*) {
  RefStream* self = As(object);
  return NewRef((*self->items)->Front().Take(), self->answer->channel, self->answer->method);
}

bool IsEnd(const RefObject* ref) { return (ref->slot->flags() & actors::kFlagEnd) != 0; }

/// Takes the front, which is `ref` and done; its reference. nullptr: the end, and no error is set.
PyObject* TakeFront(RefStream* self, PyObject* ref) {
  if (IsEnd(AsRef(ref)) || !(*self->items)->Pop()) {
    Py_DECREF(ref);
    return nullptr;
  }
  const actors::ItemStream::Taken taken = (*self->items)->taken();
  if (self->report->Due(taken.items, taken.bytes) && Usable(self->answer)) {
    if (self->of_task) {
      actors::TaskPool::Taken(self->answer->slot, taken.items);
    } else {
      (*self->answer->channel->channel)->Taken(self->answer->slot, taken.items);
    }
  }
  return ref;
}

PyObject* Next(PyObject* object) {
  PyObject* ref = Front(object, nullptr);
  if (ref == nullptr) return nullptr;
  if (AwaitRef(AsRef(ref), Instant::max(), nullptr)) return TakeFront(As(object), ref);
  Py_DECREF(ref);
  return nullptr;
}

PyObject* Take(PyObject* object, PyObject*) {
  PyObject* ref = Front(object, nullptr);
  if (ref == nullptr) return nullptr;
  if (AsRef(ref)->slot->done()) {
    PyObject* taken = TakeFront(As(object), ref);
    return taken != nullptr ? taken : Py_NewRef(Py_None);
  }
  Py_DECREF(ref);
  PyErr_SetString(PyExc_ValueError, "the next item is not there yet");
  return nullptr;
}

/// Nobody will take what is left: the actor need not make it.
void Abandon(RefStream* self) {
  RefObject* answer = self->answer;
  if (answer == nullptr || answer->slot->done() ||
      answer->generation != actors::ForkGuard::generation()) {
    return;
  }
  if (self->of_task) {
    actors::LaneId lane = 0;
    actors::TaskPool::Cancel(answer->slot, false, false, &lane);
  } else if (answer->channel != nullptr) {
    (*answer->channel->channel)->Cancel(answer->slot);
  }
}

void Dealloc(PyObject* object) {
  RefStream* self = As(object);
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Abandon(self);
  delete self->items;
  delete self->report;
  Py_XDECREF(reinterpret_cast<PyObject*>(self->answer));
  type->tp_free(object);
  Py_DECREF(type);
}

int Traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  return 0;
}

PyObject* Repr(PyObject* object) {
  return PyUnicode_FromFormat("<stream of %R>", As(object)->answer);
}

PyObject* Self(PyObject* object) { return Py_NewRef(object); }

PyMethodDef methods[] = {
    {"answer", GetAnswer, METH_NOARGS,
     "The Ref that is done when the method is: None, or its error."},
    {"front", Front, METH_NOARGS, "A Ref that is done when the next item, or the end, is there."},
    {"take", Take, METH_NOARGS, "The next item's Ref, which is there, or None at the end."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
    {Py_tp_methods, methods},
    {Py_tp_repr, reinterpret_cast<void*>(Repr)},
    {Py_tp_iter, reinterpret_cast<void*>(Self)},
    {Py_tp_iternext, reinterpret_cast<void*>(Next)},
    {Py_tp_doc, const_cast<char*>("Refs of what a streaming method gives, each when it is there.")},
    {0, nullptr}};
PyType_Spec spec = {"troupe._native.RefStream", sizeof(RefStream), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

PyObject* NewRefStream(actors::Answer* answer, std::shared_ptr<actors::ItemStream> items,
                       CallChannelObject* channel, const CallKind& kind, bool of_task) {
  PyObject* ref = NewRef(answer, channel, kind.method);
  if (ref == nullptr) return nullptr;
  auto* type = reinterpret_cast<PyTypeObject*>(stream_type);
  auto* self = As(type->tp_alloc(type, 0));
  if (self == nullptr) {
    Py_DECREF(ref);
    return nullptr;
  }
  self->answer = AsRef(ref);
  self->items = new std::shared_ptr<actors::ItemStream>(std::move(items));
  self->report = new actors::TakenReport(kind.ahead);
  self->of_task = of_task;
  return reinterpret_cast<PyObject*>(self);
}

void BindRefStream(nb::module_& m) {
  base_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (base_type == nullptr) throw nb::python_error();
  stream_type = Py_NewRef(reinterpret_cast<PyObject*>(base_type));
  m.attr("RefStream") = nb::borrow(reinterpret_cast<PyObject*>(base_type));
  m.def(
      "set_stream_type",
      [](nb::type_object type) {
        if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), base_type)) {
          throw nb::type_error("set_stream_type(type): a subclass of RefStream");
        }
        Py_XSETREF(stream_type, type.release().ptr());
      },
      nb::arg("type"), "What a streaming call gives.");
}

}  // namespace troupe::bindings
