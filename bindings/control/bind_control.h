// The control channel's Python surface: ControlClient, message codec, token check.
#pragma once

#include "bindings/support/nanobind.h"

namespace troupe::bindings {

/// bind_control(m) is what module.cc calls; it starts no thread and opens nothing.
void bind_control(nanobind::module_& m);

}  // namespace troupe::bindings
