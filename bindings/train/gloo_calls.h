// Reports to torch's Gloo about connections that break, so that nobody waits for a message for
// ever.
#pragma once

#include "bindings/support/nanobind.h"

namespace troupe::bindings {

void bind_gloo_calls(nanobind::module_& m);

}  // namespace troupe::bindings
