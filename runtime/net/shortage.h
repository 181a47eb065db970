// Log lines of an acceptor about a lack of descriptors: once when it begins, once when it is over.
//
//   SH-1  Ran is true for the first of a row only: that one is logged, the others are counted.
//   SH-2  Over gives the count of the row once, kQuiet after its last, when accepting works; else
//         nothing.
//   SH-3  A shortage that comes and goes, with every connection that ends, is one row.
//
// An acceptor that finds none left pauses for kPause and tries again: descriptors come back without
// an event when other code of the process closes some. Pure; one per listener, on its loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "runtime/base/time.h"

namespace troupe::net {

class Shortage {
 public:
  static constexpr Duration kPause = std::chrono::milliseconds(50);
  static constexpr Duration kQuiet = std::chrono::seconds(1);

  /// No descriptor was left. True: say so.
  bool Ran(Instant now) {
    last_ = now;
    return ++times_ == 1;
  }
  /// Accepting works. The number of times it did not, if it is to be said.
  std::optional<std::uint64_t> Over(Instant now) {
    if (times_ == 0 || now - last_ < kQuiet) return std::nullopt;
    const std::uint64_t times = times_;
    times_ = 0;
    return times;
  }
  /// Over may have something to say.
  bool lasts() const { return times_ != 0; }

 private:
  std::uint64_t times_ = 0;
  Instant last_{};
};

}  // namespace troupe::net
