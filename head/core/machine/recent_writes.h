// The ids of the latest writes to names and values: a repeat after a lost answer is not a second
// write.
//
// Pure; a fold over events like the rest of the state. Whoever repeats does so when its session has
// broken, within half a minute; 65,536 writes by others must not come between.
#pragma once

#include <cstddef>
#include <deque>
#include <set>

#include "runtime/base/ids.h"

namespace troupe::head {

inline constexpr std::size_t kRecentWritesMax = 65536;

class RecentWrites {
 public:
  void Note(const RequestId& request) {
    if (request.IsNil() || !known_.insert(request).second) return;
    order_.push_back(request);
    if (order_.size() <= kRecentWritesMax) return;
    known_.erase(order_.front());
    order_.pop_front();
  }
  bool Has(const RequestId& request) const { return known_.count(request) > 0; }
  const std::deque<RequestId>& in_order() const { return order_; }

 private:
  std::deque<RequestId> order_;
  std::set<RequestId> known_;
};

}  // namespace troupe::head
