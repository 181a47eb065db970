#include "bindings/values/pickle.h"

#include <cstring>

#include "bindings/values/arrays.h"
#include "bindings/values/object_values.h"
#include "bindings/values/value_memory.h"

namespace troupe::bindings {
namespace {

constexpr int kPlainItemsMax = 64;
constexpr int kPlainDepthMax = 4;

thread_local bool nested_ref_seen = false;

/// Buffers and references that the running pickling takes out of its value.
struct Taking {
  bool under_way = false;
  Buffers* buffers = nullptr;
  actors::Handles* refs = nullptr;
  PyObject* tensors = nullptr;   // dict of troupe/_code/tensors.py: memory that tensors share
  PyObject* writable = nullptr;  // the PickleBuffer whose reader may write; borrowed
};
thread_local Taking taking;

bool small_arrays_read_only = false;  // guarded by the GIL

/// The Python objects used here, imported at the first use and kept.
struct Tools {
  PyObject* dumps = nullptr;
  PyObject* loads = nullptr;
  PyObject* protocol = nullptr;
  PyObject* pickler = nullptr;  // a subclass of _pickle.Pickler
  PyObject* bytes_io = nullptr;
  PyObject* dump = nullptr;      // "dump"
  PyObject* getvalue = nullptr;  // "getvalue"
  PyObject* take_buffer = nullptr;
  PyObject* buffers_name = nullptr;       // ("buffers",)
  PyObject* needs_cloudpickle = nullptr;  // the exception that the reducer raises
};

bool IsMainOrLocal(PyObject* object) {
  PyObject* module = PyObject_GetAttrString(object, "__module__");
  PyObject* name = PyObject_GetAttrString(object, "__qualname__");
  bool by_value = true;
  if (module != nullptr && name != nullptr && PyUnicode_Check(module) && PyUnicode_Check(name)) {
    PyObject* modules = PyImport_GetModuleDict();
    by_value = PyUnicode_CompareWithASCIIString(module, "__main__") == 0 ||
               PyUnicode_FindChar(name, '<', 0, PyUnicode_GET_LENGTH(name), 1) >= 0 ||
               PyDict_GetItemWithError(modules, module) == nullptr;
  }
  Py_XDECREF(module);
  Py_XDECREF(name);
  PyErr_Clear();
  return by_value;
}

/// Returns true if the user asked cloudpickle to send some module's code by value.
bool RegistryInUse() {
  PyObject* name = PyUnicode_FromString("cloudpickle");
  PyObject* module = name != nullptr ? PyImport_GetModule(name) : nullptr;
  Py_XDECREF(name);
  bool in_use = false;
  if (module != nullptr) {
    PyObject* listed = PyObject_CallMethod(module, "list_registry_pickle_by_value", nullptr);
    in_use = listed != nullptr && PyObject_IsTrue(listed) == 1;
    Py_XDECREF(listed);
    Py_DECREF(module);
  }
  PyErr_Clear();
  return in_use;
}

Tools* GetTools();

/// A function of the package, borrowed, found once. nullptr: an error is set.
PyObject* FunctionOf(const char* module_name, const char* name, PyObject** kept) {
  if (*kept != nullptr) return *kept;
  PyObject* module = PyImport_ImportModule(module_name);
  if (module != nullptr) *kept = PyObject_GetAttrString(module, name);
  Py_XDECREF(module);
  return *kept;
}

/// Reduces an exception whatever its constructor takes; NotImplemented: in Python's own way.
PyObject* ReduceException(PyObject* exception) {
  static PyObject* kept = nullptr;
  PyObject* const reduced = FunctionOf("troupe._base.exception_pickles", "reduced", &kept);
  return reduced != nullptr ? PyObject_CallOneArg(reduced, exception) : nullptr;
}

/// A large tensor's memory goes where arrays' does; NotImplemented: torch knows best.
PyObject* ReduceTensor(PyObject* tensor) {
  static PyObject* kept = nullptr;
  PyObject* const reduce = FunctionOf("troupe._code.tensors", "reduce", &kept);
  if (reduce == nullptr) return nullptr;
  if (taking.tensors == nullptr && (taking.tensors = PyDict_New()) == nullptr) return nullptr;
  return PyObject_CallFunctionObjArgs(reduce, tensor, taking.tensors, nullptr);
}

/// Reduces a tensor's storage on a device; NotImplemented: in torch's own way.
PyObject* ReduceStorage(PyObject* storage) {
  static PyObject* kept = nullptr;
  PyObject* const reduce = FunctionOf("troupe._code.tensors", "reduce_storage", &kept);
  return reduce != nullptr ? PyObject_CallOneArg(reduce, storage) : nullptr;
}

/// By the last part of its type's name, which is all of it or follows the module's.
bool IsStorage(PyObject* object) {
  const std::string_view name = Py_TYPE(object)->tp_name;
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return last == "TypedStorage" || last == "UntypedStorage";
}

/// buffer_callback: true keeps a buffer in the pickle.
PyObject* TakeBuffer(PyObject*, PyObject* buffer) {
  const Py_buffer* view = PyPickleBuffer_GetBuffer(buffer);
  if (view == nullptr) return nullptr;
  const auto bytes = static_cast<std::size_t>(view->len);
  // Separate memory tells a collective whose it is, read-only or not.
  const std::size_t least = small_arrays_read_only ? 1 : kAlignedFromBytes;
  if (bytes < least || taking.buffers->all().size() >= kBuffersMax ||
      !PyBuffer_IsContiguous(view, 'A')) {
    Py_RETURN_TRUE;
  }
  const bool writable =
      buffer == taking.writable || (bytes < actors::kLargeBytes && view->readonly == 0);
  bool good = false;
  if (PyBuffer_IsContiguous(view, 'C')) {
    good = taking.buffers->Add(buffer, writable);
  } else {
    PyObject* raw = PyObject_CallMethod(buffer, "raw", nullptr);  // an array of any shape and order
    good = raw != nullptr && taking.buffers->Add(raw, writable);
    Py_XDECREF(raw);
  }
  if (!good) return nullptr;
  Py_RETURN_FALSE;
}

PyObject* Reduce(PyObject*, PyObject* object) {
  if (taking.buffers != nullptr && std::strcmp(Py_TYPE(object)->tp_name, "Tensor") == 0) {
    return ReduceTensor(object);
  }
  if (IsArray(object)) {
    auto* const pickler = reinterpret_cast<PyTypeObject*>(GetTools()->pickler);
    return ReduceArray(object, pickler, taking.buffers != nullptr, small_arrays_read_only);
  }
  if (PyExceptionInstance_Check(object)) return ReduceException(object);
  if (IsStorage(object)) return ReduceStorage(object);
  const bool code = PyFunction_Check(object) || PyType_Check(object);
  if (PyModule_Check(object) || (code && (IsMainOrLocal(object) || RegistryInUse()))) {
    PyErr_SetNone(GetTools()->needs_cloudpickle);
    return nullptr;
  }
  Py_RETURN_NOTIMPLEMENTED;
}

PyMethodDef reduce_def = {"reducer_override", &Reduce, METH_O, nullptr};
PyMethodDef take_def = {"_take_buffer", &TakeBuffer, METH_O, nullptr};

bool MakeTools(Tools* tools) {
  PyObject* pickle = PyImport_ImportModule("_pickle");
  PyObject* io = pickle != nullptr ? PyImport_ImportModule("io") : nullptr;
  PyObject* base = io != nullptr ? PyObject_GetAttrString(pickle, "Pickler") : nullptr;
  PyObject* reduce = base != nullptr ? PyCFunction_New(&reduce_def, nullptr) : nullptr;
  if (reduce != nullptr) {
    tools->dumps = PyObject_GetAttrString(pickle, "dumps");
    tools->loads = PyObject_GetAttrString(pickle, "loads");
    tools->protocol = PyLong_FromLong(5);
    tools->take_buffer = PyCFunction_New(&take_def, nullptr);
    tools->buffers_name = Py_BuildValue("(s)", "buffers");
    tools->bytes_io = PyObject_GetAttrString(io, "BytesIO");
    tools->dump = PyUnicode_InternFromString("dump");
    tools->getvalue = PyUnicode_InternFromString("getvalue");
    tools->needs_cloudpickle =
        PyErr_NewException("troupe._native._NeedsCloudpickle", PyExc_Exception, nullptr);
    tools->pickler = PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(O){sO}",
                                           "_Pickler", base, "reducer_override", reduce);
  }
  Py_XDECREF(reduce);
  Py_XDECREF(base);
  Py_XDECREF(io);
  Py_XDECREF(pickle);
  return tools->pickler != nullptr && tools->dumps != nullptr && tools->loads != nullptr &&
         tools->bytes_io != nullptr && tools->dump != nullptr && tools->getvalue != nullptr &&
         tools->needs_cloudpickle != nullptr && tools->take_buffer != nullptr &&
         tools->buffers_name != nullptr;
}

Tools* GetTools() {
  static Tools* tools = nullptr;
  if (tools == nullptr) {
    Tools made;
    if (!MakeTools(&made)) return nullptr;
    tools = new Tools(made);
  }
  return tools;
}

bool IsPlain(PyObject* value, int depth, int* items) {
  PyTypeObject* type = Py_TYPE(value);
  if (value == Py_None || type == &PyBool_Type || type == &PyLong_Type || type == &PyFloat_Type ||
      type == &PyUnicode_Type || type == &PyBytes_Type) {
    return true;
  }
  if (depth >= kPlainDepthMax) return false;
  if (type == &PyList_Type || type == &PyTuple_Type) {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
    PyObject** inside = PySequence_Fast_ITEMS(value);
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (--*items < 0 || !IsPlain(inside[i], depth + 1, items)) return false;
    }
    return true;
  }
  if (type != &PyDict_Type) return false;
  PyObject* key = nullptr;
  PyObject* item = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &item);) {
    if (--*items < 0 || !IsPlain(key, depth + 1, items) || !IsPlain(item, depth + 1, items)) {
      return false;
    }
  }
  return true;
}

PyObject* DumpsWithReducer(const Tools& tools, PyObject* value) {
  PyObject* buffer = PyObject_CallNoArgs(tools.bytes_io);
  if (buffer == nullptr) return nullptr;
  PyObject* bytes = nullptr;
  PyObject* pickler =
      taking.buffers == nullptr
          ? PyObject_CallFunctionObjArgs(tools.pickler, buffer, tools.protocol, nullptr)
          : PyObject_CallFunctionObjArgs(tools.pickler, buffer, tools.protocol, Py_True,
                                         tools.take_buffer, nullptr);
  if (pickler != nullptr) {
    PyObject* none = PyObject_CallMethodOneArg(pickler, tools.dump, value);
    Py_DECREF(pickler);
    if (none != nullptr) bytes = PyObject_CallMethodNoArgs(buffer, tools.getvalue);
    Py_XDECREF(none);
  }
  Py_DECREF(buffer);
  return bytes;
}

PyObject* CloudDumps(const Tools& tools, PyObject* value) {
  PyObject* cloudpickle = PyImport_ImportModule("troupe._code.cloudpickle");
  if (cloudpickle == nullptr) return nullptr;
  PyObject* bytes = taking.buffers == nullptr
                        ? PyObject_CallMethod(cloudpickle, "dumps", "OO", value, tools.protocol)
                        : PyObject_CallMethod(cloudpickle, "dumps", "OOO", value, tools.protocol,
                                              tools.take_buffer);
  Py_DECREF(cloudpickle);
  return bytes;
}

/// For the time of one pickling; what an object's own reduction pickles meanwhile is another.
class TakingInto {
 public:
  TakingInto(Buffers* buffers, actors::Handles* refs) : before_(taking) {
    taking = Taking();
    taking.under_way = true;
    taking.buffers = buffers;
    taking.refs = refs;
  }
  ~TakingInto() {
    Py_XDECREF(taking.tensors);
    taking = before_;
  }
  TakingInto(const TakingInto&) = delete;
  TakingInto& operator=(const TakingInto&) = delete;

 private:
  const Taking before_;
};

}  // namespace

void MakeSmallArraysReadOnly() { small_arrays_read_only = true; }

void TakeWritable(PyObject* buffer) { taking.writable = buffer; }

PyObject* PicklerType() {
  Tools* tools = GetTools();
  return tools != nullptr ? Py_NewRef(tools->pickler) : nullptr;
}

PyObject* Dumps(PyObject* value, Buffers* buffers, actors::Handles* refs) {
  const Tools* tools = GetTools();
  if (tools == nullptr) return nullptr;
  nested_ref_seen = false;
  int items = kPlainItemsMax;
  if (IsPlain(value, 0, &items)) {
    PyObject* args[3] = {nullptr, value, tools->protocol};
    return PyObject_Vectorcall(tools->dumps, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  }
  const TakingInto into(buffers, refs);
  PyObject* bytes = DumpsWithReducer(*tools, value);
  // The C pickler refuses some values (a lambda, a function found under another name) that
  // cloudpickle accepts.
  if (bytes != nullptr || nested_ref_seen || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) ||
      PyErr_ExceptionMatches(PyExc_MemoryError) || PyErr_ExceptionMatches(PyExc_RecursionError)) {
    return bytes;
  }
  PyErr_Clear();
  if (buffers != nullptr) buffers->Clear();
  if (refs != nullptr) refs->Clear();
  return CloudDumps(*tools, value);
}

PyObject* Loads(std::string_view pickle, PyObject* buffers) {
  const Tools* tools = GetTools();
  if (tools == nullptr) return nullptr;
  PyObject* view = PyMemoryView_FromMemory(const_cast<char*>(pickle.data()),
                                           static_cast<Py_ssize_t>(pickle.size()), PyBUF_READ);
  if (view == nullptr) return nullptr;
  PyObject* args[3] = {nullptr, view, buffers};
  PyObject* value = PyObject_Vectorcall(tools->loads, args + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                        buffers != nullptr ? tools->buffers_name : nullptr);
  Py_DECREF(view);
  return value;
}

PyObject* CallTakingRefs(PyObject* callable, actors::Handles* refs) {
  const TakingInto into(nullptr, refs);
  return PyObject_CallNoArgs(callable);
}

PyObject* CallPickling(PyObject* callable) {
  return RuntimePickles() ? PyObject_CallNoArgs(callable) : CallTakingRefs(callable, nullptr);
}

bool RuntimePickles() { return taking.under_way; }

actors::Handles* TakingRefs() {
  nested_ref_seen = nested_ref_seen || taking.refs == nullptr;
  return taking.refs;
}

actors::Handles* TakingRefsIfAny() { return taking.refs; }

bool TakeNestedRef() {
  const bool seen = nested_ref_seen;
  nested_ref_seen = false;
  return seen;
}

}  // namespace troupe::bindings
