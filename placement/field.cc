#include "placement/field.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace troupe::placement {
namespace {

// Returns true if this request cannot tell the nodes of the two apart, though another one could.
bool Alike(const Lot& a, const Lot& b, const Demand& demand) {
  return a.pool->amounts == b.pool->amounts &&
         std::all_of(demand.items().begin(), demand.items().end(), [&](const Demand::Item& item) {
           return demand.Admits(*a.pool, item) == demand.Admits(*b.pool, item);
         });
}

// Tightest lots first, of equals the nearest; what labels happen to be known does not matter.
Field Sorted(Field field, const Demand& demand) {
  std::sort(field.begin(), field.end(), [](const Lot& a, const Lot& b) {
    if (a.pool->amounts != b.pool->amounts) return a.pool->amounts < b.pool->amounts;
    return a.hosts.front()->place < b.hosts.front()->place;
  });
  Field merged;
  for (Lot& lot : field) {
    auto like = merged.rbegin();
    while (like != merged.rend() && like->pool->amounts == lot.pool->amounts &&
           !Alike(*like, lot, demand)) {
      ++like;
    }
    if (like == merged.rend() || !Alike(*like, lot, demand)) {
      merged.push_back(std::move(lot));
      continue;
    }
    const auto middle = like->hosts.insert(like->hosts.end(), lot.hosts.begin(), lot.hosts.end());
    std::inplace_merge(like->hosts.begin(), middle, like->hosts.end(), NearerFirst());
    like->hosts.resize(std::min(like->hosts.size(), demand.bundles()));
  }
  return merged;
}

}  // namespace

Field FieldOf(const PoolSet& pools, const Demand& demand) {
  Field field;
  for (const auto& [kind, by_amounts] : pools.kinds()) {
    for (const auto& [amounts, pool] : by_amounts) {
      if (demand.RoomIn(pool) == 0) continue;
      Lot lot{&pool, {}};
      for (const Host* host : pool.hosts) {
        if (lot.hosts.size() == demand.bundles()) break;
        lot.hosts.push_back(host);
      }
      field.push_back(std::move(lot));
    }
  }
  return Sorted(std::move(field), demand);
}

Field FieldOf(const Host* const* begin, const Host* const* end, Using what, const Demand& demand) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  Field field;
  std::unordered_map<const Pool*, std::size_t> lots;
  for (const Host* const* at = begin; at != end; ++at) {
    const Pool* pool = (*at)->pools[static_cast<std::size_t>(what)];
    if (pool == nullptr) continue;
    const auto [known, made] = lots.try_emplace(pool, kNone);
    if (made && demand.RoomIn(*pool) > 0) {
      known->second = field.size();
      field.push_back({pool, {}});
    }
    if (known->second == kNone) continue;
    Lot& lot = field[known->second];
    if (lot.hosts.size() < demand.bundles()) lot.hosts.push_back(*at);
  }
  return Sorted(std::move(field), demand);
}

}  // namespace troupe::placement
