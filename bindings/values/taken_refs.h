// Refs inside pickles that are no values of calls: of functions that travel, of constructors'
// arguments. Needs the GIL.
#pragma once

#include "actors/objects/object_handles.h"
#include "bindings/support/nanobind.h"

namespace troupe::bindings {

/// The objects that such a pickle names, held while this lives. It is held while this lives.
class TakenRefs {
 public:
  /// Calls `pickles()`, and takes the Refs that it pickles. What it returned.
  nanobind::object Take(nanobind::handle pickles);
  nanobind::bytes Names() const;
  /// A Ref of an empty `bytes` that takes them along: a call with it as an argument brings them,
  /// also to another host.
  nanobind::object AsRef() const;
  const actors::Handles& handles() const { return refs_; }

 private:
  actors::Handles refs_;
};

/// Binds TakenRefs and its inverse, received_refs().
void BindTakenRefs(nanobind::module_& m);

}  // namespace troupe::bindings
