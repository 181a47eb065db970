#include "bindings/values/ref_by_hand.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bindings/values/errors.h"
#include "bindings/values/object_values.h"
#include "bindings/values/ref.h"
#include "runtime/os/host.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

PyObject* ref_by_hand = nullptr;  // RefByHand, for pickles

/// The objects held for such pickles, one handle each, and whose they are: a forked child holds
/// none.
struct HeldByHand {
  actors::ObjectStore* store = nullptr;
  std::unordered_set<store::ObjectId, store::ObjectIdHash> ids;
};
HeldByHand held_by_hand;

std::string_view View(PyObject* bytes) {
  return {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}

PyObject* NewBytes(std::string_view bytes) {
  return PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
}

/// The slot of an object that its owner is asked for.
actors::AnswerRef BorrowFromOwner(actors::ObjectStore& store, const store::ObjectId& id) {
  store.Receive(id.owner, {id});
  actors::AnswerRef slot = store.Borrow(id);
  store.DropHandles({id});
  return slot;
}

PyObject* RefByHand(PyObject*, PyObject* args) {
  PyObject* name = nullptr;
  PyObject* host = nullptr;
  if (!PyArg_ParseTuple(args, "SS", &name, &host)) return nullptr;
  const std::optional<store::ObjectId> id = actors::ReadObjectId(View(name));
  if (!id || id->owner.IsNil() || (id->sequence & store::kLifeBit) != 0) {
    PyErr_SetString(PyExc_ValueError, "the pickle of a Ref is damaged: it names no object");
    return nullptr;
  }
  actors::ObjectStore* const store = Objects();
  if (store == nullptr) return nullptr;
  actors::AnswerRef slot = store->Borrow(*id);
  if (!slot && View(host) != os::BootId()) {
    RaiseRuntimeError(
        actors::kObjectLost,
        "the Ref was pickled by its program on another host: its object is not to be had here\n"
        "  pass the Ref in an argument or a result, and it is, wherever it comes");
    return nullptr;
  }
  if (!slot && !(id->owner == store->self())) slot = BorrowFromOwner(*store, *id);
  if (slot) return NewRef(slot.Take(), nullptr, nullptr);
  RaiseRuntimeError(actors::kObjectLost,
                    "the object is lost: this process owned it and pickled its Ref before a "
                    "troupe.shutdown(), which let go of it");
  return nullptr;
}

/// Releases the references; called by troupe.shutdown().
void LetGoByHand() {
  const HeldByHand held = std::exchange(held_by_hand, {});
  actors::ObjectStore* const store = actors::ObjectStore::Existing();
  if (store != nullptr && store == held.store)
    store->DropHandles({held.ids.begin(), held.ids.end()});
}

PyMethodDef by_hand_def = {"_ref_by_hand", RefByHand, METH_VARARGS, nullptr};

}  // namespace

PyObject* ReduceByHand(actors::ObjectStore& store, const store::ObjectId& id) {
  if (held_by_hand.store != &store) held_by_hand = {&store, {}};
  if (!held_by_hand.ids.insert(id).second) store.DropHandles({id});
  return Py_BuildValue("O(NN)", ref_by_hand, NewBytes(actors::NameBytes(id)),
                       NewBytes(os::BootId()));
}

void BindRefByHand(nb::module_& m) {
  ref_by_hand = PyCFunction_NewEx(&by_hand_def, nullptr, nb::str("troupe._pickled").ptr());
  if (ref_by_hand == nullptr) throw nb::python_error();
  m.attr("_ref_by_hand") = nb::borrow(ref_by_hand);
  m.def("_let_go_of_pickled_refs", &LetGoByHand,
        "Of the refs that this process pickled by itself: their objects may go.");
}

}  // namespace troupe::bindings
