#include "bindings/caller/bound.h"

#include <structmember.h>

#include <cstddef>
#include <optional>
#include <string_view>

#include "actors/core/call/call_target.h"
#include "bindings/caller/channel.h"
#include "bindings/support/argument_check.h"

namespace troupe::bindings {
namespace {

struct BoundCall {
  PyObject head;
  vectorcallfunc vectorcall;
  CallChannelObject* channel;
  CallKind kind;  // two references
  ArgumentCheck* check;
  PyObject* keeps;  // a reference
};

PyTypeObject* bound_type = nullptr;

PyObject* Call(PyObject* object, PyObject* const* args, std::size_t count, PyObject* keywords) {
  auto* self = reinterpret_cast<BoundCall*>(object);
  if (keywords != nullptr && PyTuple_GET_SIZE(keywords) == 0) keywords = nullptr;
  if (!self->check->Admits(PyVectorcall_NARGS(count), keywords)) return nullptr;
  return IssueCall(self->channel, self->kind, args, PyVectorcall_NARGS(count), keywords);
}

int Traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  auto* self = reinterpret_cast<BoundCall*>(object);
  Py_VISIT(reinterpret_cast<PyObject*>(self->channel));
  Py_VISIT(self->keeps);
  return self->check != nullptr ? self->check->Traverse(visit, arg) : 0;
}

void Dealloc(PyObject* object) {
  auto* self = reinterpret_cast<BoundCall*>(object);
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Py_XDECREF(reinterpret_cast<PyObject*>(self->channel));
  Py_XDECREF(self->kind.target);
  Py_XDECREF(self->kind.method);
  Py_XDECREF(self->keeps);
  delete self->check;
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* Repr(PyObject* object) {
  auto* self = reinterpret_cast<BoundCall*>(object);
  return PyUnicode_FromFormat("<%U() of %U>", self->kind.method, self->channel->description);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(BoundCall, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_repr, reinterpret_cast<void*>(Repr)},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {"troupe._native.BoundCall", sizeof(BoundCall), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

PyObject* NewBoundCall(CallChannelObject* channel, PyObject* target, PyObject* check,
                       PyObject* keeps) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(target, &size);
  if (text == nullptr) return nullptr;
  const std::optional<actors::CallTarget> asked =
      actors::ParseCallTarget({text, static_cast<std::size_t>(size)});
  if (!asked) return PyErr_Format(PyExc_ValueError, "%R names no method to call", target);
  PyObject* method = PyUnicode_FromStringAndSize(asked->method.data(),
                                                 static_cast<Py_ssize_t>(asked->method.size()));
  if (method == nullptr) return nullptr;
  PyUnicode_InternInPlace(&method);
  Py_INCREF(target);
  PyUnicode_InternInPlace(&target);
  auto* self = reinterpret_cast<BoundCall*>(bound_type->tp_alloc(bound_type, 0));
  if (self == nullptr) {
    Py_DECREF(target);
    Py_DECREF(method);
    return nullptr;
  }
  self->vectorcall = &Call;
  self->channel = channel;
  Py_INCREF(channel);
  self->kind = {target, method, asked->returns, asked->streams, asked->ahead};
  self->check = new ArgumentCheck(check);
  self->keeps = Py_NewRef(keeps);
  return reinterpret_cast<PyObject*>(self);
}

bool InitBoundCall() {
  if (bound_type == nullptr) bound_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return bound_type != nullptr;
}

}  // namespace troupe::bindings
