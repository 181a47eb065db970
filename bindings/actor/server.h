// CallServer of the Python module.
#pragma once

#include "bindings/support/nanobind.h"

namespace troupe::bindings {

void BindCallServer(nanobind::module_& m);

}  // namespace troupe::bindings
