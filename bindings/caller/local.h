// completed_ref, pending_ref and Resolver of the Python module.
#pragma once

#include "bindings/support/nanobind.h"

namespace troupe::bindings {

void BindCallLocal(nanobind::module_& m);

}  // namespace troupe::bindings
