// A node's holdings by the head's account: its reservations, with their sum.
//
// View: one node's; the reducer's (state.h). A reservation inside another one (a child lease) takes
// nothing more of the node. Iterates in the order of leases.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "placement/resources.h"
#include "runtime/base/ids.h"

namespace troupe::head {

/// A reservation at a node: group and attempt.
using Lease = std::pair<GroupId, std::uint64_t>;

enum class HoldingState : std::uint8_t { kAsked, kHeld, kReleasing };
struct Holding {
  placement::Resources amount;
  GroupId parent;  // nil: taken from the node itself
  HoldingState state = HoldingState::kAsked;
  /// How much of `amount` is lent to whoever the node gives it, until it is wanted back.
  placement::Resources lent;

  placement::Resources takes() const {
    placement::Resources rest = amount;
    rest.Subtract(lent);
    return rest;
  }
};

class Holdings {
 public:
  using Map = std::map<Lease, Holding>;
  using const_iterator = Map::const_iterator;

  const_iterator begin() const { return map_.begin(); }
  const_iterator end() const { return map_.end(); }
  const_iterator find(const Lease& lease) const { return map_.find(lease); }
  std::size_t count(const Lease& lease) const { return map_.count(lease); }
  std::size_t size() const { return map_.size(); }
  bool empty() const { return map_.empty(); }
  /// The sum of what is taken from the node itself, less what is lent: more than the node has where
  /// a lender is back and somebody still uses what it had lent.
  const placement::Resources& taken() const { return taken_; }
  bool HasInside(const GroupId& parent) const { return inside_.count(parent) > 0; }

  /// A reservation that is asked for, or more of one.
  void Add(const Lease& lease, const GroupId& parent, const placement::Resources& amount);
  void SetState(const Lease& lease, HoldingState state);
  /// So much of a reservation, at most all, is free until its node says otherwise.
  void Lend(const Lease& lease, const placement::Resources& lent);
  const_iterator erase(const_iterator at);
  bool erase(const Lease& lease);
  void clear() { *this = Holdings(); }

 private:
  Map map_;
  placement::Resources taken_;
  std::map<GroupId, std::size_t> inside_;  // how many, by parent
};

}  // namespace troupe::head
