// Followers of a fact (machine/facts.h), and their order.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Calls those that follow it up, before it returns.
void FollowUpFact(Turn& turn, const Fact& fact);

}  // namespace troupe::head
