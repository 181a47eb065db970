// Groups over memory for Python: GroupDoor, form_group, stop_groups, group_api.
#pragma once

#include "bindings/support/nanobind.h"

namespace troupe::bindings {

void bind_groups(nanobind::module_& m);

}  // namespace troupe::bindings
