// Nodes grouped by equal amounts and equal labels: a search looks at one of each sort.
//
// A cluster of thousands of nodes has few sorts, so finding the tightest node for a bundle does not
// cost more with more nodes. Part of ClusterIndex, which keeps one set by what is free and one by
// totals. Pure; not copyable: pools are pointed to.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>

#include "placement/host.h"

namespace troupe::placement {

struct NearerFirst {
  bool operator()(const Host* a, const Host* b) const { return a->place < b->place; }
};

/// Hosts that no request can tell apart, but by place.
struct Pool {
  std::uint32_t kind = 0;
  Amounts amounts;
  std::set<const Host*, NearerFirst> hosts;
};

class PoolSet {
 public:
  using ByAmounts = std::map<Amounts, Pool>;

  PoolSet() = default;
  PoolSet(PoolSet&&) = default;
  PoolSet& operator=(PoolSet&&) = default;

  Pool* Put(const Host* host, std::uint32_t kind, const Amounts& amounts);
  void Remove(const Host* host, Pool* pool);

  /// A node that holds `asked` and keeps least beside it, scarcest first; of equals the first by
  /// place. `usable` names the first usable node of a pool, or null. null: none.
  const Host* Tightest(const Amounts& asked,
                       const std::function<const Host*(const Pool&)>& usable) const;
  /// By kind.
  const std::map<std::uint32_t, ByAmounts>& kinds() const { return kinds_; }

 private:
  std::map<std::uint32_t, ByAmounts> kinds_;
};

}  // namespace troupe::placement
