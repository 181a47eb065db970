// Values that an answer about all waiting requests looks up once, not for each.
//
// View: the head's, in one turn that changes nothing. Without it a listing would cost the square of
// the queue's length, and a look at every node for each that waits, and nobody else is served
// meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "head/core/machine/state.h"
#include "placement/request.h"

namespace troupe::head {

class Listing {
 public:
  /// Different requests that are explained; of others only that they wait is said.
  static constexpr std::size_t kExplainedMax = 100;

  explicit Listing(const State& state);

  /// How many top-level requests are before this one in the queue.
  std::uint32_t PlaceOf(const GroupId& group) const;

  /// Returns `explain()`'s text on this request inside `parent` (nil: the cluster), asked once for
  /// all that are equal.
  template <class Explain>
  std::string Summary(const GroupId& parent, const placement::Request& request,
                      const GroupId& group, Explain explain) {
    if (const std::string* known = Find(parent, request)) return *known;
    if (known_.size() == kExplainedMax)
      return "room: troupe explain " + group.Short() + " says what is missing";
    known_.push_back({parent, request, explain()});
    return known_.back().summary;
  }

 private:
  struct Known {
    GroupId parent;
    placement::Request request;
    std::string summary;
  };
  const std::string* Find(const GroupId& parent, const placement::Request& request) const;

  std::map<GroupId, std::uint32_t> places_;
  std::vector<Known> known_;
};

}  // namespace troupe::head
