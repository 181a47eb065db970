// A peer's loans that have been dealt with here: received, or recalled before they came. Pure.
//
// Loans are numbered by their lender, and may overtake each other when they travel in different
// calls. What is beyond the first gap is kept one by one; a peer that leaves more than kAheadMax
// gaps open is not one of ours.
#pragma once

#include <cstdint>
#include <set>

namespace troupe::store {

class ReceivedLoans {
 public:
  static constexpr std::size_t kAheadMax = 1u << 16;
  enum class Added { kNew, kKnown, kTooFar };

  Added Add(std::uint64_t loan) {
    if (loan <= floor_ || ahead_.count(loan) != 0) return Added::kKnown;
    if (loan != floor_ + 1) {
      if (ahead_.size() >= kAheadMax) return Added::kTooFar;
      ahead_.insert(loan);
      return Added::kNew;
    }
    ++floor_;
    while (!ahead_.empty() && *ahead_.begin() == floor_ + 1) {
      ahead_.erase(ahead_.begin());
      ++floor_;
    }
    return Added::kNew;
  }
  std::uint64_t floor() const { return floor_; }

 private:
  std::uint64_t floor_ = 0;
  std::set<std::uint64_t> ahead_;
};

}  // namespace troupe::store
