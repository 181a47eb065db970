// Amounts of named resources, exact: ten-thousandths, so that ten times 0.1 GPU is one GPU.
//
// A value: copyable, ordered by name, with ==. A name that is absent counts as zero and a zero is
// never stored. Pure; every operation returns at once. "CPU" and "GPU" are names like any other.
//   Resources rank = Resources::Of({{"CPU", 1 * kUnit}, {"GPU", kUnit / 2}});
//   if (rank.FitsIn(free)) free.Subtract(rank);
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

namespace troupe::placement {

/// A whole unit of a resource.
inline constexpr std::uint64_t kUnit = 10'000;

class Resources {
 public:
  static Resources Of(std::initializer_list<std::pair<const std::string, std::uint64_t>> amounts);

  std::uint64_t Get(const std::string& name) const;
  void Set(const std::string& name, std::uint64_t ten_thousandths);
  bool empty() const { return amounts_.empty(); }

  void Add(const Resources& other);
  /// Down to zero, never below: what a node reports may be less than what was thought.
  void Subtract(const Resources& other);
  /// Returns true if all of this is within `free`.
  bool FitsIn(const Resources& free) const;
  /// How often this fits into `free`; at most `limit`, which an empty request gives.
  std::uint64_t TimesIn(const Resources& free, std::uint64_t limit) const;
  /// This, `count` times over.
  Resources Times(std::uint64_t count) const;
  /// Each name's lesser amount.
  static Resources Least(const Resources& a, const Resources& b);

  /// By name, ascending.
  const std::map<std::string, std::uint64_t>& amounts() const { return amounts_; }
  /// "{CPU: 1, GPU: 0.5}".
  std::string Text() const;

  friend bool operator==(const Resources& a, const Resources& b) {
    return a.amounts_ == b.amounts_;
  }
  friend bool operator!=(const Resources& a, const Resources& b) { return !(a == b); }
  friend bool operator<(const Resources& a, const Resources& b) { return a.amounts_ < b.amounts_; }

 private:
  std::map<std::string, std::uint64_t> amounts_;
};

/// "2", "0.5", "0.0001".
std::string AmountText(std::uint64_t ten_thousandths);

}  // namespace troupe::placement
