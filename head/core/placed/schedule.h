// The queue: which waiting requests get a place now.
//
// The highest priority first, of equals by fair shares and in order of submission
// (people/fair_queue.h), nobody over their quota (people/quotas.h). Whoever fits goes, until the
// first top-level request that must wait has waited for CoreOptions::keep_after: it keeps what it
// will need, and later ones may pass it only with what is left beside that (P6: no starvation).
// Requests inside a launch compete only among themselves.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Runs until nothing more can be placed; does nothing unless `state.dirty`.
void Schedule(Turn& turn);

}  // namespace troupe::head
