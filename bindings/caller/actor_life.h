// Lives: an object of the process that made an actor, held wherever a handle of it is
// (troupe/_actors/handle_counts.py). Needs the GIL.
#pragma once

#include "bindings/support/nanobind.h"

namespace troupe::bindings {

void BindLives(nanobind::module_& m);

}  // namespace troupe::bindings
