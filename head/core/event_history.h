// Past events of the cluster as text, for later questions: nodes that came and went, actors that
// ended though nobody wanted it, launches and their failed attempts.
//
// Pure; not durable: it begins with each start of the head. Ends that are asked for (kill, the last
// handle, the owner's end) and exits without an error are not noted: a sweep of ten thousand actors
// would leave nothing else.
//   CH-1  The latest kNotesMax are kept, numbered without gaps, and each has kTextMax bytes at
//         most.
//   CH-2  An end is noted once, with its cause, and whether a restart follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "runtime/wire/messages.h"

namespace troupe::head {

struct State;

class EventHistory {
 public:
  static constexpr std::size_t kNotesMax = 1000;
  static constexpr std::size_t kTextMax = 500;

  /// Writes down what `event`, which is not applied yet, means to a person, if anything.
  static void Note(State& state, const wire::EventBody& event, std::uint64_t wall_us);

  void Add(wire::ClusterEvent note);
  const std::deque<wire::ClusterEvent>& notes() const { return notes_; }

 private:
  std::uint64_t next_ = 1;
  std::deque<wire::ClusterEvent> notes_;
};

}  // namespace troupe::head
