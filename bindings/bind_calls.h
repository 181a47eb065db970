// All of the call path's Python surface: types, functions, and what runs at the interpreter's exit.
#pragma once

#include "bindings/support/nanobind.h"

namespace troupe::bindings {

/// bind_calls(m) is what module.cc calls; it starts no thread and opens nothing.
void bind_calls(nanobind::module_& m);

}  // namespace troupe::bindings
