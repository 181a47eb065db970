// The ranks' shares of their launch: leased while the driver's `current().run` runs on them, so
// that nothing the driver places inside its launch uses the same CPUs and GPUs meanwhile.
//
// A share is a group inside the launch's own reservation, like an actor's or a placement group, but
// its places are given: each rank's part of the reservation, on the node its rank is on. It waits
// until all of them are free, and says who holds them.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

/// A CreateGroup with `shares`: only of the driver of the launch's current epoch.
void OnLeaseShares(Turn& turn, const Request& request, const wire::CreateGroup& message);

}  // namespace troupe::head
