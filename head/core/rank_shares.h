// The ranks' shares of their launch: leased while the driver's `current().run` runs on them, so
// that nothing the driver places inside its launch uses the same CPUs and GPUs meanwhile.
//
// A share is a group inside the launch's own reservation, like an actor's or a placement group, but
// its places are given: each rank's part of the reservation, on the node its rank is on. It waits
// until all of them are free, and says who holds them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "head/core/turn.h"
#include "placement/request.h"

namespace troupe::head {

/// A CreateGroup with `shares`: only of the driver of the launch's current epoch.
void OnLeaseShares(Turn& turn, const Request& request, const wire::CreateGroup& message);

/// Returns places for a waiting group of shares on `views` (of the launch's reservation); nullopt:
/// not now.
std::optional<std::vector<wire::BundlePlace>> SharePlaces(
    Turn& turn, const Group& shares, const std::vector<placement::NodeView>& views);

/// Returns a line on the wanted resources and where too little of them is free.
std::string SharesWaitingFor(Turn& turn, const Group& shares);

/// Returns a line on the holders of a launch's reservation; empty if there are none.
std::string HoldersIn(Turn& turn, const Group& parent);

}  // namespace troupe::head
