// The queue: which waiting requests get a place now.
//
// The highest priority first, of equals in order of submission. The first top-level request that must wait keeps what it will need: later
// ones may pass it only with what is left beside that (P6: no starvation). Requests inside a launch
// compete only among themselves.
#pragma once

#include "head/core/turn.h"

namespace troupe::head {

/// Runs until nothing more can be placed; does nothing unless `state.dirty`.
void Schedule(Turn& turn);

}  // namespace troupe::head
