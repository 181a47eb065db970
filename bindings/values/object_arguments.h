// The objects that a call names, on the side that runs it; and what Python sees of the object
// store.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "actors/bulk/remote_arguments.h"
#include "actors/objects/object_handles.h"
#include "actors/objects/object_store.h"
#include "bindings/support/nanobind.h"

namespace troupe::bindings {

/// Objects that a call's frame names, with one handle of each until the arguments are made. Needs
/// the GIL.
struct Incoming {
  /// Registers all with their owners and maps the memory of `values`; waits for that at most
  /// kFetchMax. What can never be read raises where its value is made. False: an error is set.
  bool Fetch(const ProcessId& lender);
  /// Takes over the objects of a caller on another host, which `came` here before the call runs
  /// (CallRunner::Prepare). False: an error is set.
  bool FetchRemote(std::shared_ptr<actors::RemoteArguments> came);
  /// The next argument's value, where it is an object of another host; false: it is none. nullptr:
  /// an error is set.
  bool TakeRemote(std::string_view* bytes, PyObject** value) const;

  std::vector<store::ObjectId> values;  // arguments
  std::vector<store::ObjectId> refs;    // references inside arguments

 private:
  /// Forgets which references came: they cannot be held here, and handles are good without.
  void LeaveLives();

  actors::Handles received_;
  std::shared_ptr<actors::RemoteArguments> away_;
};

void BindObjects(nanobind::module_& m);

}  // namespace troupe::bindings
