// TaskFunction: what starts the tasks of one function in one pool, without Python code between.
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/caller/reactor.h"
#include "actors/core/call/call_target.h"
#include "actors/net/fork_guard.h"
#include "bindings/caller/channel.h"
#include "bindings/caller/stream_object.h"
#include "bindings/caller/tasks.h"
#include "bindings/support/argument_check.h"
#include "bindings/support/host.h"
#include "bindings/support/running.h"
#include "bindings/values/errors.h"
#include "bindings/values/object_values.h"
#include "bindings/values/ref.h"
#include "bindings/values/shapes.h"
#include "bindings/values/taken_refs.h"
#include "bindings/values/values.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

using actors::ByteBuffer;
using actors::TaskPool;

/// Shapes of one function: they live as long as it, which may be longer than the Python object.
struct FunctionWithShapes : TaskPool::Function {
  std::vector<std::unique_ptr<TaskPool::Shape>> shapes;
};

struct TaskFunction {
  PyObject head;
  vectorcallfunc vectorcall;
  PyObject* pool_object;     // a reference
  PyTaskPool* pool;          // in it
  std::uint32_t generation;  // number of forks: inert in a child
  CallKind kind;             // two references; its method is the function's name, for people
  ArgumentCheck* check;
  std::shared_ptr<FunctionWithShapes>* function;
  // references to tuples, or nullptr
  std::vector<std::pair<PyObject*, const TaskPool::Shape*>>* shapes;
};

constexpr std::size_t kShapesMax = 256;  // most shapes that a function keeps; other calls have one
                                         // of their own
PyTypeObject* function_type = nullptr;

TaskFunction* As(PyObject* object) { return reinterpret_cast<TaskFunction*>(object); }

/// nullptr: an error is set. `*own`: what it is in, where the function does not keep it.
const TaskPool::Shape* ShapeOf(TaskFunction* self, PyObject* keywords,
                               std::shared_ptr<const TaskPool::Shape>* own) {
  for (const auto& [known, shape] : *self->shapes) {
    if (known == keywords) return shape;
  }
  for (const auto& [known, shape] : *self->shapes) {
    if (known == nullptr || keywords == nullptr) continue;
    const int same = PyObject_RichCompareBool(known, keywords, Py_EQ);
    if (same != 0) return same > 0 ? shape : nullptr;
  }
  const actors::CallLimits limits;
  ShapeTable table{limits};
  ShapeTable::Shape unused;
  if (!table.Find(self->kind.target, keywords, &unused)) return nullptr;  // a name that is too long
  ByteBuffer names;
  table.AppendNames(names, self->kind.target, keywords);
  const Py_ssize_t count = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
  auto shape = std::make_unique<TaskPool::Shape>();
  shape->names.assign(names.view());
  // within `limits` where the call is sent
  shape->keyword_count = static_cast<std::uint16_t>(count);
  if (self->shapes->size() >= kShapesMax || count > limits.shape_keywords_max) {
    *own = std::move(shape);
    return own->get();
  }
  self->shapes->emplace_back(Py_XNewRef(keywords), shape.get());
  (*self->function)->shapes.push_back(std::move(shape));
  return self->shapes->back().second;
}

PyObject* Begun(TaskFunction* self, TaskPool::Begun begun,
                const std::shared_ptr<actors::ItemStream>& items) {
  CallChannelObject* channel = begun.lane != 0 ? self->pool->ChannelOf(begun.lane) : nullptr;
  const CallKind& kind = self->kind;
  if (kind.streams) return NewRefStream(begun.slot.Take(), items, channel, kind, /*of_task=*/true);
  if (kind.returns == 1) return NewRef(begun.slot.Take(), channel, kind.method);
  if (kind.returns == 0) Py_RETURN_NONE;
  return RefsOf(channel, kind, *items);
}

PyObject* Call(PyObject* object, PyObject* const* args, std::size_t count, PyObject* keywords) {
  TaskFunction* self = As(object);
  if (self->generation != actors::ForkGuard::generation()) {
    RaiseRuntimeError(
        ErrorCode::kConnection,
        "this process was forked from one that is connected to a cluster, and is not itself\n"
        "  call troupe.init() in it");
    return nullptr;
  }
  if (keywords != nullptr && PyTuple_GET_SIZE(keywords) == 0) keywords = nullptr;
  const Py_ssize_t positional = PyVectorcall_NARGS(count);
  if (!self->check->Admits(positional, keywords)) return nullptr;
  std::shared_ptr<const TaskPool::Shape> own_shape;
  const TaskPool::Shape* shape = ShapeOf(self, keywords, &own_shape);
  if (shape == nullptr) return nullptr;
  const std::size_t before =
      actors::kFrameHeadBytes + sizeof(actors::CallHead) + shape->names.size();
  char space[512];
  ByteBuffer values(space, sizeof space);
  values.Extend(before);  // so that the whole frame's size is checked
  Outgoing outgoing(Outgoing::Way::kObjects, actors::kLargeBytes, /*with_refs=*/true);
  TaskPool::Call call;
  std::vector<actors::ArgumentToCome> to_come;
  outgoing.to_come = &to_come;
  if (!AppendCallValues(values, args, positional, self->kind.method, keywords, &outgoing))
    return nullptr;
  TaskPool& pool = *self->pool->pool();
  if (pool.Full() && !AwaitRoom(actors::AnswerRef(pool.WhenRoom()))) return nullptr;
  call.function = *self->function;
  call.shape = shape;
  call.own_shape = std::move(own_shape);
  call.argument_count = static_cast<std::uint16_t>(positional + shape->keyword_count);
  call.values.assign(values.data() + before, values.size() - before);
  call.held = std::move(outgoing.held);
  for (actors::ArgumentToCome& each : to_come) each.at -= before;
  call.to_come = actors::PendingArguments(std::move(to_come));
  const RunningCall* const running = Running::current();
  call.parent = running != nullptr ? running->number : 0;
  call.items = NewItems(self->kind);
  const std::shared_ptr<actors::ItemStream> items = call.items;
  return Begun(self, pool.Begin(std::move(call)), items);
}

int Traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(As(object)->pool_object);
  return As(object)->check != nullptr ? As(object)->check->Traverse(visit, arg) : 0;
}

void Dealloc(PyObject* object) {
  TaskFunction* self = As(object);
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  if (self->shapes != nullptr) {
    for (const auto& [keywords, shape] : *self->shapes) Py_XDECREF(keywords);
  }
  delete self->shapes;
  delete self->check;
  delete self->function;
  Py_XDECREF(self->kind.target);
  Py_XDECREF(self->kind.method);
  Py_XDECREF(self->pool_object);
  type->tp_free(object);
  Py_DECREF(type);
}

/// Builds the function from the arguments of TaskFunction(); nullptr: an error is set.
std::shared_ptr<FunctionWithShapes> Described(PyObject* key, PyObject* payload,
                                              const actors::Handles* refs, int retries, int retried,
                                              unsigned long long calls_max,
                                              unsigned long long number) {
  auto function = std::make_shared<FunctionWithShapes>();
  ByteBuffer definition;
  if (!EncodeValue(definition, key) || !EncodeValue(definition, payload)) return nullptr;
  function->definition.assign(definition.view());
  if (refs != nullptr && !refs->empty()) {
    ByteBuffer with_refs;
    if (!EncodeValue(with_refs, key)) return nullptr;
    function->refs_at = with_refs.size();
    if (!EncodeWithRefs(with_refs, payload, *refs)) return nullptr;
    function->definition.assign(with_refs.view());
    for (const store::ObjectId& id : refs->ids()) {
      actors::ObjectStore::Current()->AddHandle(id);
      function->refs.Add(id);
    }
  }
  function->retries = retries;
  function->retried = static_cast<TaskPool::Retried>(retried);
  function->calls_max = calls_max;
  function->number = number;
  return function;
}

PyObject* New(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"pool",    "target",    "name",   "key",  "definition", "retries",
                                "retried", "calls_max", "number", "refs", "check",      nullptr};
  PyObject* pool_object = nullptr;
  PyObject* target = nullptr;
  PyObject* name = nullptr;
  PyObject* key = nullptr;
  PyObject* definition = nullptr;
  int retries = 0;
  int retried = 0;
  unsigned long long calls_max = 0;
  unsigned long long number = 0;
  PyObject* refs_object = Py_None;
  PyObject* check = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OUUUS|iiKKOO:TaskFunction",
                                   const_cast<char**>(names), &pool_object, &target, &name, &key,
                                   &definition, &retries, &retried, &calls_max, &number,
                                   &refs_object, &check)) {
    return nullptr;
  }
  PyTaskPool* pool = nullptr;
  if (!nb::try_cast(nb::handle(pool_object), pool) || pool == nullptr || retried < 0 ||
      retried > 2) {
    PyErr_SetString(PyExc_TypeError, "TaskFunction(pool, ...): a TaskPool; retried from 0 to 2");
    return nullptr;
  }
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(target, &size);
  if (text == nullptr) return nullptr;
  const std::optional<actors::CallTarget> asked =
      actors::ParseCallTarget({text, static_cast<std::size_t>(size)});
  if (!asked) return PyErr_Format(PyExc_ValueError, "%R names no function to call", target);
  const char* const called = PyUnicode_AsUTF8AndSize(name, &size);
  if (called == nullptr) return nullptr;
  const std::string for_people(called, static_cast<std::size_t>(size));
  const TakenRefs* refs = nullptr;
  if (refs_object != Py_None && !nb::try_cast(nb::handle(refs_object), refs)) {
    PyErr_SetString(PyExc_TypeError, "TaskFunction(refs=): TakenRefs");
    return nullptr;
  }
  std::shared_ptr<FunctionWithShapes> function =
      Described(key, definition, refs != nullptr ? &refs->handles() : nullptr, retries, retried,
                calls_max, number);
  if (function == nullptr) return nullptr;
  function->name = std::make_shared<const std::string>(for_people);
  TaskFunction* self = As(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->vectorcall = &Call;
  self->pool_object = Py_NewRef(pool_object);
  self->pool = pool;
  self->generation = actors::ForkGuard::generation();
  self->kind = {Py_NewRef(target), Py_NewRef(name), asked->returns, asked->streams, asked->ahead};
  self->check = new ArgumentCheck(check);
  self->function = new std::shared_ptr<FunctionWithShapes>(std::move(function));
  self->shapes = new std::vector<std::pair<PyObject*, const TaskPool::Shape*>>();
  return reinterpret_cast<PyObject*>(self);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(TaskFunction, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(New)},
    {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>("TaskFunction(pool, target, name, key, definition, retries=0, "
                                  "retried=0, calls_max=0, number=0, "
                                  "refs=None, check=None): "
                                  "called, it starts a task and gives what its caller gets.")},
    {0, nullptr}};
PyType_Spec spec = {"troupe._native.TaskFunction", sizeof(TaskFunction), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

void BindTaskFunction(nb::module_& m) {
  function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (function_type == nullptr) throw nb::python_error();
  m.attr("TaskFunction") = nb::borrow(reinterpret_cast<PyObject*>(function_type));
}

}  // namespace troupe::bindings
