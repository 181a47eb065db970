// Decides whether an object that the other end asks about is unknown, or only not known yet: the
// end may have heard of it from this process before the message that gives it was run here, in a
// round of posted work that has begun. The second round after that settles it.
//
// Pure. Of one question at a time: the first of those that wait.
#pragma once

#include <cstdint>
#include <optional>

namespace troupe::actors {

class Doubt {
 public:
  static constexpr std::uint64_t kRounds = 2;

  /// False: the question is to be asked again in a later round. True: it is settled, and the next
  /// one may be asked.
  bool Settled(bool known, std::uint64_t round) {
    if (!known) {
      if (!since_) since_ = round;
      if (round < *since_ + kRounds) return false;
    }
    Clear();
    return true;
  }
  void Clear() { since_.reset(); }

 private:
  std::optional<std::uint64_t> since_;
};

}  // namespace troupe::actors
