// Digests of device memory for Python: device_digest.
#pragma once

#include "bindings/support/nanobind.h"

namespace troupe::bindings {

void bind_digest(nanobind::module_& m);

}  // namespace troupe::bindings
