// The state of the cluster, for `troupe status` and the state API.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

void OnGetStatus(Turn& turn, const Request& request);
void OnListGroups(Turn& turn, const Request& request);
void OnListEvents(Turn& turn, const Request& request);

}  // namespace troupe::head
