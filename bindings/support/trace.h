// The process's ring of spans for Python: trace_open, trace_add.
#pragma once

#include "bindings/support/nanobind.h"

namespace troupe::bindings {

void bind_trace(nanobind::module_& m);

}  // namespace troupe::bindings
