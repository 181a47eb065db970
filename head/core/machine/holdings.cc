#include "head/core/machine/holdings.h"

namespace troupe::head {

void Holdings::Add(const Lease& lease, const GroupId& parent, const placement::Resources& amount) {
  const auto [at, made] = map_.try_emplace(lease);
  Holding& holding = at->second;
  if (made) {
    holding.parent = parent;
    if (!parent.IsNil()) ++inside_[parent];
  }
  holding.amount.Add(amount);
  if (holding.parent.IsNil()) taken_.Add(amount);
}

void Holdings::SetState(const Lease& lease, HoldingState state) {
  const auto known = map_.find(lease);
  if (known != map_.end()) known->second.state = state;
}

void Holdings::Lend(const Lease& lease, const placement::Resources& lent) {
  const auto known = map_.find(lease);
  if (known == map_.end()) return;
  Holding& holding = known->second;
  if (holding.parent.IsNil()) taken_.Subtract(holding.takes());
  holding.lent = placement::Resources::Least(lent, holding.amount);
  if (holding.parent.IsNil()) taken_.Add(holding.takes());
}

Holdings::const_iterator Holdings::erase(const_iterator at) {
  const Holding& holding = at->second;
  if (holding.parent.IsNil()) {
    taken_.Subtract(holding.takes());
  } else if (const auto inside = inside_.find(holding.parent); --inside->second == 0) {
    inside_.erase(inside);
  }
  return map_.erase(at);
}

bool Holdings::erase(const Lease& lease) {
  const auto known = map_.find(lease);
  if (known == map_.end()) return false;
  erase(const_iterator(known));
  return true;
}

}  // namespace troupe::head
