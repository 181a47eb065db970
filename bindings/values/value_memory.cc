#include "bindings/values/value_memory.h"

#include <optional>
#include <utility>

#include "bindings/values/errors.h"
#include "runtime/store/copy.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

struct MemoryObject {
  PyObject head;
  std::shared_ptr<actors::ObjectView> view;
  std::optional<store::Reading> mapping;  // copy on write, for this object alone
  PyObject* of;                           // the MemoryObject whose bytes these are, or nullptr
  char* data;
  Py_ssize_t bytes;
  bool own;       // no other process or value reads these bytes
  bool writable;  // through the buffer protocol; then also `own`
};
PyTypeObject* memory_type = nullptr;

bool map_privately = false;  // guarded by the GIL

MemoryObject* AsMemory(PyObject* object) { return reinterpret_cast<MemoryObject*>(object); }

void Dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  MemoryObject* memory = AsMemory(object);
  memory->mapping.~optional();
  memory->view.~shared_ptr();
  Py_XDECREF(memory->of);
  PyObject_Free(object);
  Py_DECREF(type);
}

int GetBuffer(PyObject* object, Py_buffer* view, int flags) {
  MemoryObject* memory = AsMemory(object);
  return PyBuffer_FillInfo(view, object, memory->data, memory->bytes, !memory->writable, flags);
}

/// A new object with `room` bytes behind it; nullptr: MemoryError is set.
MemoryObject* NewMemory(std::size_t room) {
  auto* memory = static_cast<MemoryObject*>(PyObject_Malloc(sizeof(MemoryObject) + room));
  if (memory == nullptr) {
    PyErr_NoMemory();
    return nullptr;
  }
  PyObject_Init(&memory->head, memory_type);
  new (&memory->view) std::shared_ptr<actors::ObjectView>();
  new (&memory->mapping) std::optional<store::Reading>();
  memory->of = nullptr;
  memory->data = nullptr;
  memory->bytes = 0;
  memory->own = memory->writable = false;
  return memory;
}

/// A writable buffer over the same bytes. None: they can be written to anyway, others read them
/// too, or they are no value's.
PyObject* WritableMemory(PyObject* object) {
  if (Py_TYPE(object) != memory_type || !AsMemory(object)->own || AsMemory(object)->writable)
    return Py_NewRef(Py_None);
  MemoryObject* alias = NewMemory(0);
  if (alias == nullptr) return nullptr;
  alias->of = Py_NewRef(object);
  alias->data = AsMemory(object)->data;
  alias->bytes = AsMemory(object)->bytes;
  alias->own = alias->writable = true;
  return &alias->head;
}

PyTypeObject* MakeType() {
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
      {Py_bf_getbuffer, reinterpret_cast<void*>(GetBuffer)},
      {Py_tp_doc, const_cast<char*>("Memory of a value's array, kept while this lives.")},
      {0, nullptr}};
  static PyType_Spec spec = {"troupe._native._Memory", sizeof(MemoryObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace

PyObject* NewObjectMemory(std::shared_ptr<actors::ObjectView> view, std::uint64_t offset,
                          std::uint64_t bytes, bool writable) {
  std::optional<store::Reading> mapping;
  char* data = const_cast<char*>(view->bytes().data());
  if (writable || map_privately) {
    StatusOr<store::Reading> reading = view->Private(&data);
    if (!reading.ok()) {
      RaiseStatus(reading.status());
      return nullptr;
    }
    mapping = *std::move(reading);
  }
  MemoryObject* memory = NewMemory(0);
  if (memory == nullptr) return nullptr;
  memory->view = std::move(view);
  memory->own = mapping.has_value();
  memory->mapping = std::move(mapping);
  memory->data = data + offset;
  memory->bytes = static_cast<Py_ssize_t>(bytes);
  memory->writable = writable;
  return &memory->head;
}

PyObject* NewCopiedMemory(std::string_view bytes, bool writable) {
  MemoryObject* memory = NewMemory(bytes.size() + kArrayAlignment);
  if (memory == nullptr) return nullptr;
  const auto behind = reinterpret_cast<std::uintptr_t>(memory + 1);
  const std::uintptr_t aligned = (behind + kArrayAlignment - 1) & ~(kArrayAlignment - 1);
  memory->data = reinterpret_cast<char*>(memory + 1) + (aligned - behind);
  memory->bytes = static_cast<Py_ssize_t>(bytes.size());
  memory->own = true;
  memory->writable = writable;
  store::CopyBytes(memory->data, bytes.data(), bytes.size());
  return &memory->head;
}

void BindValueMemory(nb::module_& m) {
  memory_type = MakeType();
  if (memory_type == nullptr) throw nb::python_error();
  m.def(
      "_map_privately", [] { map_privately = true; },
      "Make every array that this process reads from now on its own: the memory is mapped copy on "
      "write, and _writable_memory gives it.");
  m.def(
      "_writable_memory", [](nb::handle memory) { return nb::steal(WritableMemory(memory.ptr())); },
      nb::arg("memory").none(),
      "A writable buffer over the memory of a read-only array that came in a value, where no other "
      "process or value reads it; else None.");
}

}  // namespace troupe::bindings
