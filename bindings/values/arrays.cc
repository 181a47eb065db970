#include "bindings/values/arrays.h"

#include <cstring>

#include "actors/objects/object_store.h"

namespace troupe::bindings {
namespace {

/// The Python objects used here, found at the first array and kept.
struct Tools {
  PyObject* reduce_ex = nullptr;       // "__reduce_ex__"
  PyObject* protocol = nullptr;        // 5
  PyObject* dispatch_table = nullptr;  // "dispatch_table"
  PyObject* copyreg = nullptr;         // copyreg.dispatch_table
  PyObject* reduced = nullptr;         // troupe._code.arrays.reduced
};

PyObject* AttributeOf(const char* module_name, const char* name) {
  PyObject* module = PyImport_ImportModule(module_name);
  PyObject* found = module != nullptr ? PyObject_GetAttrString(module, name) : nullptr;
  Py_XDECREF(module);
  return found;
}

/// nullptr: an error is set.
const Tools* GetTools() {
  static const Tools* tools = nullptr;
  if (tools != nullptr) return tools;
  Tools made;
  made.copyreg = AttributeOf("copyreg", "dispatch_table");
  if (made.copyreg != nullptr) made.reduced = AttributeOf("troupe._code.arrays", "reduced");
  if (made.reduced == nullptr) return nullptr;
  made.reduce_ex = PyUnicode_InternFromString("__reduce_ex__");
  made.dispatch_table = PyUnicode_InternFromString("dispatch_table");
  made.protocol = PyLong_FromLong(5);
  if (made.reduce_ex == nullptr || made.dispatch_table == nullptr || made.protocol == nullptr)
    return nullptr;
  tools = new Tools(made);
  return tools;
}

/// Returns 1 if the user has a reduction for the class, which comes first. -1: an error is set.
int UserReduces(const Tools& tools, PyTypeObject* pickler, PyObject* kind) {
  PyObject* table = PyDict_GetItemWithError(pickler->tp_dict, tools.dispatch_table);
  if (table == nullptr && PyErr_Occurred()) return -1;
  return PySequence_Contains(table != nullptr ? table : tools.copyreg, kind);
}

/// The PickleBuffer `buffer`, which a reader may not write to. A new reference.
PyObject* ReadOnly(PyObject* buffer) {
  PyObject* view = PyMemoryView_FromObject(buffer);
  PyObject* read_only =
      view != nullptr ? PyObject_CallMethod(view, "toreadonly", nullptr) : nullptr;
  PyObject* made = read_only != nullptr ? PyPickleBuffer_FromObject(read_only) : nullptr;
  Py_XDECREF(read_only);
  Py_XDECREF(view);
  return made;
}

/// The reduction with its first argument, a PickleBuffer, read-only. Takes `reduced` over.
PyObject* WithReadOnlyBuffer(PyObject* reduced, PyObject* given) {
  PyObject* buffer = ReadOnly(PyTuple_GET_ITEM(given, 0));
  PyObject* rest =
      buffer != nullptr ? PyTuple_GetSlice(given, 1, PyTuple_GET_SIZE(given)) : nullptr;
  PyObject* first = rest != nullptr ? PyTuple_Pack(1, buffer) : nullptr;
  PyObject* args = first != nullptr ? PySequence_Concat(first, rest) : nullptr;
  PyObject* changed =
      args != nullptr ? PyTuple_Pack(2, PyTuple_GET_ITEM(reduced, 0), args) : nullptr;
  for (PyObject* each : {buffer, rest, first, args, reduced}) Py_XDECREF(each);
  return changed;
}

}  // namespace

bool IsArray(PyObject* object) {
  for (PyTypeObject* kind = Py_TYPE(object); kind != nullptr; kind = kind->tp_base) {
    if (std::strcmp(kind->tp_name, "numpy.ndarray") == 0) return true;
  }
  return false;
}

PyObject* ReduceArray(PyObject* array, PyTypeObject* pickler, bool apart, bool small_read_only) {
  const Tools* const tools = GetTools();
  if (tools == nullptr) return nullptr;
  auto* const kind = reinterpret_cast<PyObject*>(Py_TYPE(array));
  const int theirs = UserReduces(*tools, pickler, kind);
  if (theirs < 0) return nullptr;
  if (theirs != 0) Py_RETURN_NOTIMPLEMENTED;
  PyObject* args[2] = {array, tools->protocol};
  PyObject* reduced = PyObject_VectorcallMethod(tools->reduce_ex, args, 2, nullptr);
  if (reduced == nullptr || !PyTuple_Check(reduced)) return reduced;
  PyObject* given = PyTuple_GET_SIZE(reduced) == 2 ? PyTuple_GET_ITEM(reduced, 1) : nullptr;
  const bool buffer = given != nullptr && PyTuple_Check(given) && PyTuple_GET_SIZE(given) != 0 &&
                      PyPickleBuffer_Check(PyTuple_GET_ITEM(given, 0));
  if (!buffer) {
    PyObject* aligned = PyObject_CallFunctionObjArgs(tools->reduced, array, reduced,
                                                     apart ? Py_True : Py_False, nullptr);
    Py_DECREF(reduced);
    return aligned;
  }
  if (!small_read_only) return reduced;
  const Py_buffer* memory = PyPickleBuffer_GetBuffer(PyTuple_GET_ITEM(given, 0));
  if (memory == nullptr) {
    Py_DECREF(reduced);
    return nullptr;
  }
  const bool small = static_cast<std::size_t>(memory->len) < actors::kLargeBytes;
  return small ? WithReadOnlyBuffer(reduced, given) : reduced;
}

}  // namespace troupe::bindings
