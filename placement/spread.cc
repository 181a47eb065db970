#include "placement/spread.h"

#include <algorithm>
#include <deque>

namespace troupe::placement {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

class Flow {
 public:
  Flow(const Field& field, const Demand& demand)
      : field_(field),
        items_(demand.items()),
        used_(field.size(), 0),
        given_(items_.size(), std::vector<std::size_t>(field.size(), 0)),
        fits_(items_.size(), std::vector<char>(field.size(), 0)) {
    for (std::size_t item = 0; item < items_.size(); ++item) {
      for (std::size_t lot = 0; lot < field.size(); ++lot) {
        const Pool& pool = *field[lot].pool;
        fits_[item][lot] =
            FitsIn(items_[item].amounts, pool.amounts) && demand.Admits(pool, items_[item]);
      }
    }
  }

  bool Run() {
    for (std::size_t item = 0; item < items_.size(); ++item) {
      for (std::size_t rest = items_[item].bundles.size(); rest > 0;) {
        const std::size_t more = Augment(item, rest);
        if (more == 0) return false;
        rest -= more;
      }
    }
    return true;
  }

  Picks Result() const {
    Picks picks;
    for (std::size_t lot = 0; lot < field_.size(); ++lot) {
      std::size_t next = 0;
      for (std::size_t item = 0; item < items_.size(); ++item) {
        for (std::size_t i = 0; i < given_[item][lot]; ++i) {
          picks.push_back({item, field_[lot].hosts[next++], 1});
        }
      }
    }
    return picks;
  }

 private:
  // Gives up to `rest` more nodes to an item; others may be moved to lots of their own choice.
  std::size_t Augment(std::size_t item, std::size_t rest) {
    std::vector<std::size_t> through(items_.size(), kNone);  // the lot an item is to leave
    std::vector<std::size_t> from(items_.size(), kNone);     // for the sake of this item
    std::vector<char> seen(field_.size(), 0);
    std::deque<std::size_t> queue{item};
    from[item] = item;
    while (!queue.empty()) {
      const std::size_t at = queue.front();
      queue.pop_front();
      for (std::size_t lot = 0; lot < field_.size(); ++lot) {
        if (seen[lot] || !fits_[at][lot]) continue;
        seen[lot] = 1;
        const std::size_t free = field_[lot].hosts.size() - used_[lot];
        if (free > 0) return Shift(at, lot, std::min(rest, free), from, through);
        for (std::size_t other = 0; other < items_.size(); ++other) {
          if (given_[other][lot] == 0 || from[other] != kNone) continue;
          from[other] = at;
          through[other] = lot;
          queue.push_back(other);
        }
      }
    }
    return 0;
  }

  std::size_t Shift(std::size_t at, std::size_t lot, std::size_t amount,
                    const std::vector<std::size_t>& from, const std::vector<std::size_t>& through) {
    for (std::size_t i = at; from[i] != i; i = from[i])
      amount = std::min(amount, given_[i][through[i]]);
    used_[lot] += amount;
    given_[at][lot] += amount;
    for (std::size_t i = at; from[i] != i; i = from[i]) {
      given_[i][through[i]] -= amount;
      given_[from[i]][through[i]] += amount;
    }
    return amount;
  }

  const Field& field_;
  const std::vector<Demand::Item>& items_;
  std::vector<std::size_t> used_;
  std::vector<std::vector<std::size_t>> given_;  // item, lot
  std::vector<std::vector<char>> fits_;
};

}  // namespace

std::optional<Picks> OnDistinctNodes(const Field& field, const Demand& demand) {
  std::size_t nodes = 0;
  for (const Lot& lot : field) nodes += lot.hosts.size();
  if (nodes < demand.bundles()) return std::nullopt;
  Flow flow(field, demand);
  if (!flow.Run()) return std::nullopt;
  return flow.Result();
}

}  // namespace troupe::placement
