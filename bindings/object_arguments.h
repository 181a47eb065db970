// The objects that a call names, on the side that runs it; and what Python sees of the object store.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "actors/object_handles.h"
#include "actors/object_store.h"

namespace troupe::bindings {

/// What a call's frame names, with one handle of each until the arguments are made. Needs the GIL.
struct Incoming {
  /// Registers all with their owners and maps the memory of `values`; waits for that at most kFetchMax. What can
  /// never be read raises where its value is made. False: an error is set.
  bool Fetch(const ProcessId& lender);

  std::vector<store::ObjectId> values;  // arguments
  std::vector<store::ObjectId> refs;    // references inside arguments

 private:
  actors::Handles received_;
};

void BindObjects(nanobind::module_& m);

}  // namespace troupe::bindings
