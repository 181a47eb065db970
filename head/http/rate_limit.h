// Token buckets for requests, one per caller.
//
//   RL-1  A caller may make kBurst requests at once and kPerSecond of them in the long run.
//   RL-2  At most kCallersMax buckets are kept; the one that was used least recently makes room.
//
// Pure; not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <map>
#include <string>

#include "runtime/base/time.h"

namespace troupe::head {

class RateLimit {
 public:
  static constexpr std::size_t kCallersMax = 1024;

  RateLimit(double per_second, double burst) : per_second_(per_second), burst_(burst) {}

  /// Takes one request out of the caller's bucket. False: it is empty.
  bool Take(const std::string& caller, Instant now) {
    const auto found = by_caller_.find(caller);
    if (found == by_caller_.end()) {
      if (buckets_.size() == kCallersMax) {
        by_caller_.erase(buckets_.back().caller);
        buckets_.pop_back();
      }
      buckets_.push_front({caller, burst_, now});
      by_caller_[caller] = buckets_.begin();
    } else {
      buckets_.splice(buckets_.begin(), buckets_, found->second);
    }
    Bucket& bucket = buckets_.front();
    bucket.left = std::min(burst_, bucket.left + Seconds(now - bucket.at) * per_second_);
    bucket.at = now;
    if (bucket.left < 1) return false;
    bucket.left -= 1;
    return true;
  }

 private:
  struct Bucket {
    std::string caller;
    double left = 0;
    Instant at{};
  };

  const double per_second_;
  const double burst_;
  std::list<Bucket> buckets_;  // the most recently used first
  std::map<std::string, std::list<Bucket>::iterator> by_caller_;
};

}  // namespace troupe::head
