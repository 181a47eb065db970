#include "placement/mixed.h"

#include <functional>
#include <utility>

namespace troupe::placement {
namespace {

// A node in use by the plan that grows.
struct Spot {
  const Host* host = nullptr;
  std::size_t lot = 0;
  Amounts left;
  std::size_t used = 0;  // bundles on it
};

class Table {
 public:
  Table(const Field& field, const Demand& demand)
      : field_(field), demand_(demand), opened_(field.size(), 0) {
    for (const Demand::Item& item : demand.items()) {
      admits_.emplace_back();
      for (const Lot& lot : field) admits_.back().push_back(demand.Admits(*lot.pool, item));
    }
  }

  std::optional<Picks> Greedy(Prefer prefer) {
    Picks picks;
    for (std::size_t item = 0; item < demand_.items().size(); ++item) {
      for (std::size_t i = 0; i < demand_.items()[item].bundles.size(); ++i) {
        const std::optional<std::size_t> spot = Best(item, prefer);
        if (!spot) return std::nullopt;
        Give(*spot, item);
        picks.push_back({item, spots_[*spot].host, 1});
      }
    }
    return picks;
  }

  std::optional<Picks> Search(Prefer prefer) {
    std::vector<std::size_t> order;
    for (std::size_t item = 0; item < demand_.items().size(); ++item) {
      order.insert(order.end(), demand_.items()[item].bundles.size(), item);
    }
    if (order.size() > kSearchBundlesMax) return std::nullopt;
    Picks picks(order.size());
    std::size_t steps = 0;
    std::function<bool(std::size_t)> place = [&](std::size_t at) {
      if (at == order.size()) return true;
      const std::size_t item = order[at];
      const auto here = [&](std::size_t spot) {
        if (++steps > kSearchStepsMax || !Holds(spot, item)) return false;
        Give(spot, item);
        picks[at] = {item, spots_[spot].host, 1};
        if (place(at + 1)) return true;
        TakeBack(spot, item);
        return false;
      };
      const auto on_used = [&] {
        for (std::size_t spot = 0; spot < spots_.size(); ++spot) {
          if (here(spot)) return true;
        }
        return false;
      };
      const auto on_new = [&] {  // a single node of each lot: its nodes are all equal
        for (std::size_t lot = 0; lot < field_.size(); ++lot) {
          if (!HoldsNew(lot, item)) continue;
          Open(lot);
          if (here(spots_.size() - 1)) return true;
          Close();
        }
        return false;
      };
      return prefer == Prefer::kFewNodes ? on_used() || on_new() : on_new() || on_used();
    };
    if (!place(0)) return std::nullopt;
    return picks;
  }

 private:
  bool Holds(std::size_t spot, std::size_t item) const {
    return admits_[item][spots_[spot].lot] &&
           FitsIn(demand_.items()[item].amounts, spots_[spot].left);
  }
  bool HoldsNew(std::size_t lot, std::size_t item) const {
    return opened_[lot] < field_[lot].hosts.size() && admits_[item][lot] &&
           FitsIn(demand_.items()[item].amounts, field_[lot].pool->amounts);
  }
  void Open(std::size_t lot) {
    spots_.push_back({field_[lot].hosts[opened_[lot]++], lot, field_[lot].pool->amounts, 0});
  }
  void Close() {
    --opened_[spots_.back().lot];
    spots_.pop_back();
  }
  void Give(std::size_t spot, std::size_t item) {
    SubtractFrom(spots_[spot].left, demand_.items()[item].amounts);
    ++spots_[spot].used;
  }
  void TakeBack(std::size_t spot, std::size_t item) {
    AddTo(spots_[spot].left, demand_.items()[item].amounts);
    --spots_[spot].used;
  }

  // Few nodes: the fullest of those in use, else the tightest new one. Many: the emptiest new one,
  // else the one in use with fewest bundles.
  std::optional<std::size_t> Best(std::size_t item, Prefer prefer) {
    std::optional<std::size_t> used;
    for (std::size_t spot = 0; spot < spots_.size(); ++spot) {
      if (!Holds(spot, item)) continue;
      const bool better =
          !used || (prefer == Prefer::kFewNodes ? spots_[spot].left < spots_[*used].left
                                                : spots_[spot].used < spots_[*used].used);
      if (better) used = spot;
    }
    if (used && prefer == Prefer::kFewNodes) return used;
    std::optional<std::size_t> fresh;
    for (std::size_t lot = 0; lot < field_.size(); ++lot) {
      if (!HoldsNew(lot, item)) continue;
      const Amounts& amounts = field_[lot].pool->amounts;
      const bool better = !fresh || (prefer == Prefer::kFewNodes
                                         ? amounts < field_[*fresh].pool->amounts
                                         : demand_.Emptier(amounts, field_[*fresh].pool->amounts));
      if (better) fresh = lot;
    }
    if (!fresh) return used;
    Open(*fresh);
    return spots_.size() - 1;
  }

  const Field& field_;
  const Demand& demand_;
  std::vector<std::vector<char>> admits_;  // item, lot
  std::vector<std::size_t> opened_;
  std::vector<Spot> spots_;
};

}  // namespace

std::optional<Picks> Mixed(const Field& field, const Demand& demand, Prefer prefer) {
  if (auto picks = Table(field, demand).Greedy(prefer)) return picks;
  if (demand.items().size() == 1) return std::nullopt;  // greed is exact for equal bundles
  return Table(field, demand).Search(prefer);
}

}  // namespace troupe::placement
