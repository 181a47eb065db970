// A turn over one input: the state it changes, the effects it asks for, the objects to look at
// again at its end. Lives for one call of References.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/store/core/effect.h"
#include "runtime/store/core/state.h"

namespace troupe::store {

struct Turn {
  State& state;
  Effects& effects;
  Instant now;
  /// Objects that may have lost their last hold: looked at at the end of the turn, not by
  /// recursion, since values may lie inside each other to any depth.
  std::vector<ObjectId> touched;
  /// Pairs that are over, and why; ended at the end of the turn, since that changes many objects.
  std::vector<std::pair<ProcessId, std::string>> strikes;

  bool Mine(const ObjectId& id) const { return id.owner == state.self; }
  void Touch(const ObjectId& id) { touched.push_back(id); }
};

OwnedObject* FindOwned(Turn& turn, const ObjectId& id);
BorrowedObject* FindBorrowed(Turn& turn, const ObjectId& id);

/// A value kept here contains the object / does so no more. Unknown objects are passed over.
void Contain(Turn& turn, const ObjectId& id);
void Uncontain(Turn& turn, std::vector<ObjectId>& contained);

/// Releases what nobody holds any more, and what that held in turn.
void Finish(Turn& turn);

}  // namespace troupe::store
