#include "bindings/call_ref_pickle.h"

#include <optional>
#include <string>
#include <vector>

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

thread_local const std::vector<store::ObjectId>* named_refs = nullptr;

std::optional<store::ObjectId> IdOf(PyObject* bytes) {
  if (bytes == nullptr) return std::nullopt;
  return actors::ReadObjectId({PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))});
}

/// The inverse: the name between hosts, which of its value's Refs it is, and what who pickled it calls it, if that is
/// another name.
PyObject* BorrowedRef(PyObject*, PyObject* args) {
  PyObject* name = nullptr;
  Py_ssize_t index = -1;
  PyObject* theirs = nullptr;
  if (!PyArg_ParseTuple(args, "S|nS", &name, &index, &theirs)) return nullptr;
  const std::optional<store::ObjectId> id = IdOf(name);
  actors::ObjectStore* const store = id ? Objects() : nullptr;
  actors::Slot* slot = store != nullptr ? store->Borrow(*id) : nullptr;
  const std::optional<store::ObjectId> lent = IdOf(theirs);
  if (slot == nullptr && store != nullptr && lent) slot = store->Borrow(*lent, &*id);
  const std::vector<store::ObjectId>* const named = named_refs;
  if (slot == nullptr && store != nullptr && named != nullptr && index >= 0 &&
      static_cast<std::size_t>(index) < named->size()) {
    slot = store->Borrow((*named)[static_cast<std::size_t>(index)], &*id);
  }
  if (slot != nullptr) return NewRef(slot, nullptr, nullptr);
  if (!PyErr_Occurred()) {
    RaiseRuntimeError(actors::kObjectLost,
                      "the object is lost: its Ref was pickled in a value that is gone, or is not this process's");
  }
  return nullptr;
}
PyObject* NewName(const store::ObjectId& id) {
  const std::string bytes = actors::NameBytes(id);
  return PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
}

PyMethodDef borrowed_def = {"_borrowed_ref", BorrowedRef, METH_VARARGS, nullptr};

}  // namespace

NamedRefs::NamedRefs(const std::vector<store::ObjectId>* refs) : before_(named_refs) { named_refs = refs; }
NamedRefs::~NamedRefs() { named_refs = before_; }
const std::vector<store::ObjectId>* NamedRefs::Current() { return named_refs; }

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
  const Py_ssize_t index = NextRefIndex();
  refs->Add(*id);
  const store::ObjectId away = store->NameAway(*id);
  PyObject* name = NewName(away);
  PyObject* theirs = name != nullptr && !(away == *id) ? NewName(*id) : nullptr;
  if (name == nullptr || PyErr_Occurred()) {
    Py_XDECREF(name);
    return nullptr;
  }
  if (theirs != nullptr) return Py_BuildValue("O(NnN)", borrowed_ref, name, index, theirs);
  return Py_BuildValue("O(Nn)", borrowed_ref, name, index);
}

void BindRefPickle(nb::module_& m) {
  borrowed_ref = PyCFunction_NewEx(&borrowed_def, nullptr, nb::str("troupe._native").ptr());
  if (borrowed_ref == nullptr) throw nb::python_error();
  m.attr("_borrowed_ref") = nb::borrow(borrowed_ref);
}

}  // namespace troupe::bindings
