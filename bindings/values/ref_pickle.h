// Refs inside values: a Ref as its object's name, and a Ref of a name that came. Needs the GIL.
#pragma once

#include <vector>

#include "actors/objects/object_handles.h"
#include "actors/objects/object_store.h"
#include "actors/slots/answer.h"
#include "bindings/support/nanobind.h"
#include "runtime/store/core/object_id.h"

namespace troupe::bindings {

/// Ref.__reduce__. Who gets the value that is being pickled registers the name with its owner
/// before it makes a Ref of it; until then whoever pickles holds it (TakingRefs). In what the
/// runtime pickles and can have no Refs: a TypeError; in what the program pickles by itself:
/// ref_by_hand.h.
PyObject* ReduceRef(PyObject* ref, PyObject*);

/// Returns the tuple that stands for an object in a pickle: its name between hosts, its index among
/// those that `refs` holds, and its local name, if that is another one. `refs` takes the caller's
/// handle over. nullptr: an error is set.
PyObject* TakeNamed(actors::ObjectStore& store, const store::ObjectId& id, actors::Handles* refs);
/// Borrows the object that a tuple of TakeNamed stands for. Empty: it is not known here, or an
/// error is set.
actors::AnswerRef BorrowNamed(actors::ObjectStore& store, PyObject* names);

/// While this lives, in this thread: what the n-th Ref that was taken out of the value that is
/// being loaded stands for here. It is asked where the name in the pickle means nothing in this
/// process: another process of this host has what came from another one under a name of its own.
class NamedRefs {
 public:
  explicit NamedRefs(const std::vector<store::ObjectId>& refs);
  ~NamedRefs();
  NamedRefs(const NamedRefs&) = delete;
  NamedRefs& operator=(const NamedRefs&) = delete;
  /// Returns the object of this thread's innermost NamedRefs for that Ref; nullptr: none.
  static const store::ObjectId* At(Py_ssize_t index);
  /// The slot of what At(index) names. Where there are many, the first call borrows them all at
  /// once. Empty: there is none, or it was taken.
  static actors::AnswerRef TakeSlot(actors::ObjectStore& store, Py_ssize_t index);

 private:
  const std::vector<store::ObjectId>& refs_;
  std::vector<actors::AnswerRef> slots_;  // each until it is taken
  bool borrowed_ = false;
  NamedRefs* const before_;
};

void BindRefPickle(nanobind::module_& m);

}  // namespace troupe::bindings
