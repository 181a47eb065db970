// The ids of submissions whose launches have left memory soon after their end: who lost the answer
// repeats the submission, and is to find that launch in the archive.
//
// Pure; a value. Bounded by age and by number. Whoever repeats does so within half a minute of a
// lost session; 65,536 launches must not end and leave memory in between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <utility>

#include "runtime/base/ids.h"

namespace troupe::head {

class MovedSubmissions {
 public:
  static constexpr std::size_t kMovedMax = 65'536;

  /// `until_us`: the lived time after which nobody repeats it.
  void Add(const RequestId& request, std::uint64_t until_us) {
    if (request.IsNil() || !known_.insert(request).second) return;
    const std::uint64_t newest_us = order_.empty() ? 0 : NewestUntilUs();
    order_.emplace_back(std::max(until_us, newest_us), request);
    if (order_.size() > kMovedMax) DropFirst();
  }
  void DropBefore(std::uint64_t lived_us) {
    while (!order_.empty() && order_.front().first < lived_us) DropFirst();
  }
  bool Has(const RequestId& request) const { return known_.count(request) > 0; }
  bool empty() const { return order_.empty(); }
  std::size_t size() const { return order_.size(); }
  std::uint64_t NewestUntilUs() const { return order_.back().first; }

 private:
  void DropFirst() {
    known_.erase(order_.front().second);
    order_.pop_front();
  }

  std::deque<std::pair<std::uint64_t, RequestId>> order_;
  std::set<RequestId> known_;
};

}  // namespace troupe::head
