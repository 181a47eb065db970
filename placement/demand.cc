#include "placement/demand.h"

#include <algorithm>
#include <limits>

namespace troupe::placement {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

Demand::Demand(ClusterIndex& cluster, const Request& request, const Selector& labels)
    : cluster_(cluster), labels_(labels), bundles_(request.bundles.size()) {
  cluster.Know(labels);
  for (const Selector& own : request.bundle_labels) cluster.Know(own);
  const auto own_labels = [&request](std::size_t bundle) {
    const bool has =
        bundle < request.bundle_labels.size() && !request.bundle_labels[bundle].empty();
    return has ? &request.bundle_labels[bundle] : nullptr;
  };
  const auto same = [](const Selector* a, const Selector* b) {
    return a == b || (a != nullptr && b != nullptr && *a == *b);
  };
  const Resources* last = nullptr;
  for (std::size_t i = 0; i < bundles_; ++i) {
    if (last != nullptr && *last == request.bundles[i] &&
        same(items_.back().labels, own_labels(i))) {
      items_.back().bundles.push_back(static_cast<std::uint32_t>(i));
      continue;
    }
    const std::optional<Amounts> amounts = cluster.AmountsOf(request.bundles[i]);
    if (!amounts) {
      known_ = false;
      return;
    }
    last = &request.bundles[i];
    items_.push_back({*amounts, own_labels(i), {static_cast<std::uint32_t>(i)}});
  }
  std::stable_sort(items_.begin(), items_.end(),
                   [](const Item& a, const Item& b) { return b.amounts < a.amounts; });
  std::vector<Item> merged;
  for (Item& item : items_) {
    auto equal = merged.rbegin();
    while (equal != merged.rend() && equal->amounts == item.amounts &&
           !same(equal->labels, item.labels))
      ++equal;
    if (equal == merged.rend() || equal->amounts != item.amounts) {
      merged.push_back(std::move(item));
    } else {
      equal->bundles.insert(equal->bundles.end(), item.bundles.begin(), item.bundles.end());
      std::sort(equal->bundles.begin(), equal->bundles.end());
    }
  }
  items_ = std::move(merged);
  for (const Item& item : items_) {
    if (sum_.empty()) {
      sum_.assign(item.amounts.size(), 0);
      least_ = item.amounts;
    }
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      const std::uint64_t count = item.bundles.size();
      const bool over = item.amounts[i] > (kMost - sum_[i]) / count;
      sum_[i] = over ? kMost : sum_[i] + item.amounts[i] * count;
      least_[i] = std::min(least_[i], item.amounts[i]);
    }
  }
}

bool Demand::Admits(const Pool& pool, const Item& item) const {
  const Labels& labels = cluster_.LabelsOf(pool.kind);
  return Holds(labels_, labels) && (item.labels == nullptr || Holds(*item.labels, labels));
}

bool Demand::AdmitsAll(const Pool& pool) const {
  return std::all_of(items_.begin(), items_.end(),
                     [&](const Item& item) { return Admits(pool, item); });
}

bool Demand::Emptier(const Amounts& a, const Amounts& b) const {
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    if (sum_[i] > 0 && a[i] != b[i]) return a[i] > b[i];
  }
  return a < b;
}

std::uint64_t Demand::RoomIn(const Pool& pool) const {
  const bool any = std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
    return FitsIn(item.amounts, pool.amounts) && Admits(pool, item);
  });
  return any ? TimesIn(least_, pool.amounts, bundles_) : 0;
}

}  // namespace troupe::placement
