// A request in the index's terms: equal bundles are counted, and what each sort of node can hold of
// them is looked up.
//
// View: one plan on one index, for one of the request's alternatives of labels; borrows both, which
// must stay as they are while it lives. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "placement/cluster_index.h"

namespace troupe::placement {

class Demand {
 public:
  struct Item {
    Amounts amounts;
    const Selector* labels = nullptr;    // null: none of its own
    std::vector<std::uint32_t> bundles;  // positions in the request, ascending
  };

  Demand(ClusterIndex& cluster, const Request& request, const Selector& labels);

  /// Largest first.
  const std::vector<Item>& items() const { return items_; }
  std::size_t bundles() const { return bundles_; }
  /// All bundles on one node.
  const Amounts& sum() const { return sum_; }
  /// False: asks for what no node has; there is nothing else to ask then.
  bool known() const { return known_; }

  /// Returns true if a bundle of the item may go to nodes of this pool, by its labels alone.
  bool Admits(const Pool& pool, const Item& item) const;
  /// Returns true if every bundle may.
  bool AdmitsAll(const Pool& pool) const;
  /// At least as many bundles of the demand as a node of this pool can hold; exact for one item.
  std::uint64_t RoomIn(const Pool& pool) const;

  /// Returns true if `a` has more of the requested resources than `b`; of equals, less of all else.
  bool Emptier(const Amounts& a, const Amounts& b) const;

 private:
  const ClusterIndex& cluster_;
  const Selector& labels_;
  std::vector<Item> items_;
  std::size_t bundles_ = 0;
  Amounts sum_;
  Amounts least_;
  bool known_ = true;
};

}  // namespace troupe::placement
