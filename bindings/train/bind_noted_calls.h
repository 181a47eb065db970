// Methods of torch's classes that note each call: noted_wait, counted_message.
#pragma once

#include "bindings/support/nanobind.h"

namespace troupe::bindings {

void bind_noted_calls(nanobind::module_& m);

}  // namespace troupe::bindings
