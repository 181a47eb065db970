#include "head/core/machine/listing.h"

#include <algorithm>

namespace troupe::head {

Listing::Listing(const State& state) {
  std::uint32_t before = 0;
  for (const QueueKey& key : state.waiting_groups)
    places_.emplace(std::get<GroupId>(key), before++);
}

std::uint32_t Listing::PlaceOf(const GroupId& group) const {
  const auto found = places_.find(group);
  return found == places_.end() ? 0 : found->second;
}

const std::string* Listing::Find(const GroupId& parent, const placement::Request& request) const {
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& known) {
    return known.parent == parent && known.request == request;
  });
  return found == known_.end() ? nullptr : &found->summary;
}

}  // namespace troupe::head
