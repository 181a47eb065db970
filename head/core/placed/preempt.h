// Ending what runs so that a request of higher priority gets a place: by policy, and only what can
// start again.
//
// A launch with several attempts begins another epoch, which is not counted as one of them; an
// actor with restarts left is re-created, and so are those in a placement group, which is
// rescheduled.
#pragma once

#include <vector>

#include "head/core/machine/turn.h"
#include "placement/preempt.h"

namespace troupe::head {

/// The top-level reservations: what holds what, what may be ended, and what is on its way out.
std::vector<placement::Running> TopLevelReservations(Turn& turn);
/// Ends what holds it; it waits in the queue again. `by`: for whom.
void Preempt(Turn& turn, const GroupId& victim, const GroupId& by);

}  // namespace troupe::head
