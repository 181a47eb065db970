// The objects that a call names, on the side that runs it; and what Python sees of the object store.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "actors/object_store.h"

namespace troupe::bindings {

/// One handle of each, until the arguments are made. Needs the GIL.
struct Incoming {
  Incoming() = default;
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;
  ~Incoming();

  /// Registers them with their owners and maps their memory; waits for that at most kFetchMax. What can never
  /// be read raises where its value is made. False: an error is set.
  bool Fetch(const ProcessId& lender);

  std::vector<store::ObjectId> ids;

 private:
  bool received_ = false;
};

void BindObjects(nanobind::module_& m);

}  // namespace troupe::bindings
