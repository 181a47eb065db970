// Places of the ranks' shares of a launch inside its reservation (rank_shares.h), and who holds it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "head/core/machine/turn.h"
#include "placement/request.h"

namespace troupe::head {

/// Returns where a waiting group of shares goes on `views` (of the launch's reservation); nullopt:
/// not now.
std::optional<std::vector<wire::BundlePlace>> SharePlaces(
    Turn& turn, const Group& shares, const std::vector<placement::NodeView>& views);

/// Describes in one line what is wanted, and where too little of it is free.
std::string SharesWaitingFor(Turn& turn, const Group& shares);

/// Names in one line the holders of parts of a launch's reservation; empty: there are none.
std::string HoldersIn(Turn& turn, const Group& parent);

}  // namespace troupe::head
