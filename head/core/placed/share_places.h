// Where the ranks' shares of a launch go inside its reservation (rank_shares.h), and who holds it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "head/core/machine/turn.h"
#include "placement/request.h"

namespace troupe::head {

/// Where a waiting group of shares goes on `views` (of the launch's reservation); nullopt: not now.
std::optional<std::vector<wire::BundlePlace>> SharePlaces(
    Turn& turn, const Group& shares, const std::vector<placement::NodeView>& views);

/// What is wanted and where too little of it is free, in one line.
std::string SharesWaitingFor(Turn& turn, const Group& shares);

/// Who holds parts of a launch's reservation, in one line; empty when nobody does.
std::string HoldersIn(Turn& turn, const Group& parent);

}  // namespace troupe::head
