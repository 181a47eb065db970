// Refs that a program pickles by itself, rather than as a part of a call, a result or what it puts.
//
// Nobody knows how many copies of such bytes there are, nor when the last of them is gone. So the
// object is held by the process that pickled it, until that shuts down or ends, and who loads the
// bytes on the same host borrows it from its owner (Ray calls it out-of-band serialization, and
// holds it likewise). Needs the GIL.
#pragma once

#include "actors/objects/object_store.h"
#include "bindings/support/nanobind.h"
#include "runtime/store/core/object_id.h"

namespace troupe::bindings {

/// Returns the reduction for such a pickle, as a pair for pickle. Takes over one handle of `id`.
/// nullptr: an error is set.
PyObject* ReduceByHand(actors::ObjectStore& store, const store::ObjectId& id);

/// Binds the inverse, and what lets go of all that is held.
void BindRefByHand(nanobind::module_& m);

}  // namespace troupe::bindings
