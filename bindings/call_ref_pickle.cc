#include "bindings/call_ref_pickle.h"

#include <optional>
#include <string>

#include "actors/object_store.h"
#include "bindings/call_channel.h"
#include "bindings/call_errors.h"
#include "bindings/call_pickle.h"
#include "bindings/call_ref.h"
#include "bindings/object_values.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

PyObject* borrowed_ref = nullptr;  // BorrowedRef, for pickles

/// The inverse.
PyObject* BorrowedRef(PyObject*, PyObject* name) {
  char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(name, &bytes, &size) != 0) return nullptr;
  const std::optional<store::ObjectId> id = actors::ReadObjectId({bytes, static_cast<std::size_t>(size)});
  actors::ObjectStore* const store = id ? Objects() : nullptr;
  actors::Slot* const slot = store != nullptr ? store->Borrow(*id) : nullptr;
  if (slot != nullptr) return NewRef(slot, nullptr, nullptr);
  if (!PyErr_Occurred()) {
    RaiseRuntimeError(actors::kObjectLost,
                      "the object is lost: its Ref was pickled in a value that is gone, or is not this process's");
  }
  return nullptr;
}
PyMethodDef borrowed_def = {"_borrowed_ref", BorrowedRef, METH_O, nullptr};

}  // namespace

PyObject* ReduceRef(PyObject* self, PyObject*) {
  RefObject* ref = AsRef(self);
  actors::Handles* const refs = TakingRefs();
  if (refs == nullptr) {
    PyErr_SetString(PyExc_TypeError,
                    "a Ref can be pickled only as part of a value that a call, its result or troupe.put takes: "
                    "elsewhere nobody would know who still has it\n  pass it there, or pickle troupe.get(ref)");
    return nullptr;
  }
  actors::ObjectStore* const store = Usable(ref) ? Objects() : nullptr;
  if (store == nullptr) return nullptr;
  if (ref->channel != nullptr && !ref->slot->done()) ref->channel->channel->get()->Flush();
  const std::optional<store::ObjectId> id = store->Export(ref->slot);
  if (!id) {
    RaiseRuntimeError(actors::kObjectLost,
                      "this Ref was made before a fork, by the parent process\n  put its value here");
    return nullptr;
  }
  refs->Add(*id);
  const std::string name = actors::NameBytes(*id);
  PyObject* bytes = PyBytes_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
  return bytes != nullptr ? Py_BuildValue("O(N)", borrowed_ref, bytes) : nullptr;
}

void BindRefPickle(nb::module_& m) {
  borrowed_ref = PyCFunction_NewEx(&borrowed_def, nullptr, nb::str("troupe._native").ptr());
  if (borrowed_ref == nullptr) throw nb::python_error();
  m.attr("_borrowed_ref") = nb::borrow(borrowed_ref);
}

}  // namespace troupe::bindings
