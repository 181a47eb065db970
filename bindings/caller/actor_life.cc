#include "bindings/caller/actor_life.h"

#include <memory>
#include <optional>
#include <utility>

#include "actors/caller/reactor.h"
#include "actors/core/call/call_frame.h"
#include "actors/net/fork_guard.h"
#include "actors/objects/object_store.h"
#include "bindings/support/callable_cell.h"
#include "bindings/values/errors.h"
#include "bindings/values/pickle.h"
#include "bindings/values/ref.h"
#include "bindings/values/ref_pickle.h"
#include "bindings/values/values.h"

namespace nb = nanobind;

namespace troupe::bindings {
namespace {

using actors::Answer;

RefObject* LifeOf(nb::handle life) {
  if (!IsRef(life.ptr())) throw nb::type_error("a life is a Ref");
  return AsRef(life.ptr());
}

nb::object NewRefOf(Answer* slot) {
  PyObject* const ref = NewRef(slot, nullptr, nullptr);
  if (ref == nullptr) throw nb::python_error();
  return nb::steal(ref);
}

/// The slot has a value, so that nothing waits for one.
nb::object NewLife() {
  actors::AnswerRef slot(
      Answer::New(actors::CallReactor::Current().NextLocalId() | store::kLifeBit));
  actors::ByteBuffer none;
  if (!EncodeValue(none, Py_None)) throw nb::python_error();
  slot.get()->Claim();
  slot.get()->Fill(actors::kFlagReply, none.view());
  slot.get()->Finish();
  return NewRefOf(slot.Take());
}

nb::object LendLife(nb::handle life) {
  const RefObject* const ref = LifeOf(life);
  actors::Handles* const refs = TakingRefsIfAny();
  if (refs == nullptr || ref->generation != actors::ForkGuard::generation()) return nb::none();
  actors::ObjectStore* const store = actors::ObjectStore::Current();
  const std::optional<store::ObjectId> id =
      store != nullptr ? store->Export(ref->slot) : std::nullopt;
  if (!id) return nb::none();  // without a descriptor to spare, too
  PyObject* const names = TakeNamed(*store, *id, refs);
  if (names == nullptr) throw nb::python_error();
  return nb::steal(names);
}

nb::object BorrowLife(const nb::tuple& names) {
  actors::ObjectStore* const store = actors::ObjectStore::Existing();
  actors::AnswerRef slot =
      store != nullptr ? BorrowNamed(*store, names.ptr()) : actors::AnswerRef();
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  const std::optional<store::ObjectId> id =
      slot.get() != nullptr ? store->NameOf(slot.get()) : std::nullopt;
  return id && store::IsLife(*id) ? NewRefOf(slot.Take()) : nb::none();
}

bool WhenLifeOver(nb::handle life, nb::handle callable) {
  actors::ObjectStore* const store = actors::ObjectStore::Existing();
  if (store == nullptr) return false;
  auto once = std::make_unique<CallOnce>(callable.ptr());
  CallOnce* const unused = once.get();
  std::unique_ptr<actors::Completion> then = std::move(once);
  const bool known = store->WhenForgotten(LifeOf(life)->slot, &then);
  if (then != nullptr) unused->Drop();
  return known;
}

}  // namespace

void BindLives(nb::module_& m) {
  m.def("new_life", &NewLife,
        "A Ref whose name can be lent; it is held as any other, and has no value to speak of.");
  m.def("lend_life", &LendLife, nb::arg("life"),
        "While a value is pickled that may hold refs: its names, and it is held with that value "
        "from now on. Else None.");
  m.def("borrow_life", &BorrowLife, nb::arg("names"),
        "While such a value is unpickled: a Ref of those names. None: it did not come along.");
  m.def("when_life_over", &WhenLifeOver, nb::arg("life"), nb::arg("callable"),
        "Calls it on a thread of the runtime, once for all that ask, when nobody holds a life that "
        "this process made. "
        "False: no other process knows of it, and it is over with the last Ref here.");
}

}  // namespace troupe::bindings
