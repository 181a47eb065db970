#include "bindings/values/ref_pickle.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/objects/object_store.h"
#include "bindings/values/channel_object.h"
#include "bindings/values/errors.h"
#include "bindings/values/object_values.h"
#include "bindings/values/pickle.h"
#include "bindings/values/ref.h"
#include "bindings/values/ref_by_hand.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

PyObject* borrowed_ref = nullptr;  // BorrowedRef, for pickles

constexpr std::size_t kManyRefs = 4;

thread_local NamedRefs* named_refs = nullptr;

std::optional<store::ObjectId> IdOf(PyObject* bytes) {
  if (bytes == nullptr) return std::nullopt;
  return actors::ReadObjectId(
      {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))});
}

PyObject* BorrowedRef(PyObject*, PyObject* args) {
  actors::ObjectStore* const store = Objects();
  actors::AnswerRef slot = store != nullptr ? BorrowNamed(*store, args) : actors::AnswerRef();
  if (slot) return NewRef(slot.Take(), nullptr, nullptr);
  if (!PyErr_Occurred()) {
    RaiseRuntimeError(actors::kObjectLost,
                      "the object is lost: its Ref was pickled in a value that is gone, or is not "
                      "this process's");
  }
  return nullptr;
}

PyObject* NewName(const store::ObjectId& id) {
  const std::string bytes = actors::NameBytes(id);
  return PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
}

PyMethodDef borrowed_def = {"_borrowed_ref", BorrowedRef, METH_VARARGS, nullptr};

}  // namespace

NamedRefs::NamedRefs(const std::vector<store::ObjectId>& refs) : refs_(refs), before_(named_refs) {
  named_refs = this;
}

NamedRefs::~NamedRefs() { named_refs = before_; }

const store::ObjectId* NamedRefs::At(Py_ssize_t index) {
  const bool named = named_refs != nullptr && index >= 0 &&
                     static_cast<std::size_t>(index) < named_refs->refs_.size();
  return named ? &named_refs->refs_[static_cast<std::size_t>(index)] : nullptr;
}

actors::AnswerRef NamedRefs::TakeSlot(actors::ObjectStore& store, Py_ssize_t index) {
  if (At(index) == nullptr || named_refs->refs_.size() < kManyRefs) return actors::AnswerRef();
  if (!std::exchange(named_refs->borrowed_, true))
    named_refs->slots_ = store.BorrowAll(named_refs->refs_);
  return std::move(named_refs->slots_[static_cast<std::size_t>(index)]);
}

PyObject* TakeNamed(actors::ObjectStore& store, const store::ObjectId& id, actors::Handles* refs) {
  const auto index = static_cast<Py_ssize_t>(refs->ids().size());
  refs->Add(id);
  const store::ObjectId away = store.RemoteNameOf(id);
  PyObject* const name = NewName(away);
  if (away == id) return Py_BuildValue("(Nn)", name, index);
  return Py_BuildValue("(NnN)", name, index, NewName(id));
}

actors::AnswerRef BorrowNamed(actors::ObjectStore& store, PyObject* names) {
  PyObject* name = nullptr;
  Py_ssize_t index = -1;
  PyObject* theirs = nullptr;
  if (!PyArg_ParseTuple(names, "S|nS", &name, &index, &theirs)) return actors::AnswerRef();
  const std::optional<store::ObjectId> id = IdOf(name);
  if (!id) return actors::AnswerRef();
  const store::ObjectId* const here = NamedRefs::At(index);
  actors::AnswerRef slot;
  if (here != nullptr && *here == *id) slot = NamedRefs::TakeSlot(store, index);
  if (!slot) slot = store.Borrow(*id);
  const std::optional<store::ObjectId> lent = IdOf(theirs);
  if (!slot && lent) slot = store.Borrow(*lent, &*id);
  if (!slot && here != nullptr) slot = store.Borrow(*here, &*id);
  return slot;
}

PyObject* ReduceRef(PyObject* self, PyObject*) {
  RefObject* ref = AsRef(self);
  const bool by_hand = !RuntimePickles();
  actors::Handles* const refs = by_hand ? nullptr : TakingRefs();
  if (refs == nullptr && !by_hand) {
    PyErr_SetString(PyExc_TypeError,
                    "a Ref travels only in a value that a call, its result or troupe.put takes: "
                    "elsewhere nobody would know "
                    "who still has it\n  pass it there, or pass troupe.get(ref)");
    return nullptr;
  }
  actors::ObjectStore* const store = Usable(ref) ? Objects() : nullptr;
  if (store == nullptr) return nullptr;
  if (ref->channel != nullptr && !ref->slot->done()) ref->channel->channel->get()->Flush();
  const std::optional<store::ObjectId> id = store->Export(ref->slot);
  if (!id) {
    RaiseRuntimeError(
        actors::kObjectLost,
        "this Ref was made before a fork, by the parent process\n  put its value here");
    return nullptr;
  }
  if (by_hand) return ReduceByHand(*store, *id);
  PyObject* const names = TakeNamed(*store, *id, refs);
  return names != nullptr ? Py_BuildValue("ON", borrowed_ref, names) : nullptr;
}

void BindRefPickle(nb::module_& m) {
  borrowed_ref = PyCFunction_NewEx(&borrowed_def, nullptr, nb::str("troupe._pickled").ptr());
  if (borrowed_ref == nullptr) throw nb::python_error();
  m.attr("_borrowed_ref") = nb::borrow(borrowed_ref);
  BindRefByHand(m);
}

}  // namespace troupe::bindings
