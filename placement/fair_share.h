// Fair share: of the requests of one priority, those of the owner who has held least go first.
//
// What an owner has held is measured by the dominant share: of all resources, the largest part of
// what the cluster could have given in the last 24 hours.
//
//   FS-1  Of requests of one priority, the next is the first one of the owner with the smallest
//         dominant share; of equal shares the one that was submitted first.
//   FS-2  An owner whose first request has been passed over for too long goes before all others
//         with that one request, so that nobody starves behind owners who have held less.
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "placement/resources.h"

namespace troupe::placement {

/// Parts of what a cluster has, by resource: 0.5 is one half.
using Parts = std::map<std::string, double>;

/// Returns the owner's part of `total`. Of CPU, GPU and memory alone: the holder of the one unit of
/// a made-up resource does not hold the cluster.
Parts PartsOf(const Resources& held, const Resources& total);

/// An owner's holdings in the last 24 hours, in sums per hour.
class UsageWindow {
 public:
  static constexpr std::uint64_t kHours = 24;
  static constexpr std::uint64_t kHourUs = 3600ull * 1'000'000;
  /// Seconds for which all of a resource was held, or longer a part of it.
  using Sums = std::map<std::string, double>;

  /// Counts `parts` as held from `from_us` to `to_us`.
  void Add(std::uint64_t from_us, std::uint64_t to_us, const Parts& parts);
  /// Puts sums in the place of those of that hour.
  void Set(std::uint64_t hour, Sums sums) { hours_[hour] = std::move(sums); }
  /// Drops what is older than the window.
  void Forget(std::uint64_t now_us);

  /// The dominant share, with `more` in addition.
  double DominantShare(std::uint64_t now_us, Sums more = {}) const;

  /// By hour.
  const std::map<std::uint64_t, Sums>& hours() const { return hours_; }
  bool empty() const { return hours_.empty(); }

 private:
  std::map<std::uint64_t, Sums> hours_;
};

/// The order in which the requests of several owners are tried, one priority at a time.
///   FairOrder order;
///   order.AddLine(share, passed_over, {3, 9});   // an owner's requests, by when they came
///   while (const auto next = order.Next()) { ...; order.SetShare(next->line, share_now); }
class FairOrder {
 public:
  struct Next {
    std::size_t line = 0;  // as AddLine returned it
    std::size_t item = 0;  // place in that line
  };

  /// `orders` ascends: the places of an owner's requests among all. `passed_over`: see FS-2.
  std::size_t AddLine(double share, bool passed_over, std::vector<std::uint64_t> orders);
  std::optional<Next> Pick();
  /// The owner of that line holds more now.
  void SetShare(std::size_t line, double share);

 private:
  struct Line {
    double share = 0;
    bool passed_over = false;
    std::vector<std::uint64_t> orders;
    std::size_t next = 0;
  };
  using Key = std::tuple<bool, double, std::uint64_t, std::size_t>;
  Key KeyOf(std::size_t line) const;

  std::vector<Line> lines_;
  std::set<Key> queue_;  // lines that are not at their end
};

}  // namespace troupe::placement
