// Ends of what owners have made: launches, actors and groups.
#pragma once

#include <functional>
#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Ends everything `owner` has: launches, actors, groups.
void EndOwned(Turn& turn, const OwnerId& owner, const std::string& why);
/// Predicates that say which launches, actors and groups are meant; each is asked about open ones
/// that are not detached.
struct Selection {
  std::function<bool(const Launch&)> launch;
  std::function<bool(const Actor&)> actor;
  std::function<bool(const Group&)> group;
};
/// Ends what is meant: launches with their grace, actors, groups, in that order.
void EndAll(Turn& turn, const Selection& which, const std::string& why);

}  // namespace troupe::head
