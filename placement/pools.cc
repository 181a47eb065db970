#include "placement/pools.h"

#include <iterator>

namespace troupe::placement {
namespace {

// Amounts are words in order: from one that lacks something, the next that may hold it is found by
// raising that place and all after it to what is asked.
PoolSet::ByAmounts::const_iterator FirstThatHolds(const PoolSet::ByAmounts& pools,
                                                  PoolSet::ByAmounts::const_iterator from,
                                                  const Amounts& asked) {
  while (from != pools.end()) {
    const Amounts& have = from->first;
    std::size_t short_at = 0;
    while (short_at < asked.size() && asked[short_at] <= have[short_at]) ++short_at;
    if (short_at == asked.size()) return from;
    Amounts next(have);
    for (std::size_t i = short_at; i < asked.size(); ++i) next[i] = asked[i];
    from = pools.lower_bound(next);
  }
  return from;
}

}  // namespace

Pool* PoolSet::Put(const Host* host, std::uint32_t kind, const Amounts& amounts) {
  const auto [at, made] = kinds_[kind].try_emplace(amounts);
  Pool& pool = at->second;
  if (made) {
    pool.kind = kind;
    pool.amounts = amounts;
  }
  pool.hosts.insert(host);
  return &pool;
}

void PoolSet::Remove(const Host* host, Pool* pool) {
  pool->hosts.erase(host);
  if (!pool->hosts.empty()) return;
  const auto kind = kinds_.find(pool->kind);
  kind->second.erase(kind->second.find(pool->amounts));
  if (kind->second.empty()) kinds_.erase(kind);
}

const Host* PoolSet::Tightest(const Amounts& asked,
                              const std::function<const Host*(const Pool&)>& usable) const {
  const Host* best = nullptr;
  const Amounts* least = nullptr;
  for (const auto& [kind, pools] : kinds_) {
    for (auto at = FirstThatHolds(pools, pools.lower_bound(asked), asked); at != pools.end();
         at = FirstThatHolds(pools, std::next(at), asked)) {
      if (least != nullptr && *least < at->first) break;
      const Host* host = usable(at->second);
      if (host == nullptr) continue;
      const bool equal = least != nullptr && *least == at->first;
      if (!equal || NearerFirst()(host, best)) best = host;
      least = &at->first;
      break;
    }
  }
  return best;
}

}  // namespace troupe::placement
