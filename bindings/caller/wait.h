// get() and wait() of the Python module. Need the GIL, and let go of it to block.
#pragma once

#include "bindings/support/nanobind.h"

namespace troupe::bindings {

void BindCallWait(nanobind::module_& m);

}  // namespace troupe::bindings
