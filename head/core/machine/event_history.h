// History of the cluster, in words, for who asks afterwards: nodes that came and went,
// actors that ended though nobody wanted it, launches and their failed attempts. The list;
// machine/event_notes.h has what is written down.
//
// Pure; a value; not durable: it begins with each start of the head.
//   CH-1  The latest kNotesMax are kept, numbered without gaps, and each has kTextMax bytes at
//         most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "runtime/wire/messages.h"

namespace troupe::head {

class EventHistory {
 public:
  static constexpr std::size_t kNotesMax = 1000;
  static constexpr std::size_t kTextMax = 500;

  void Add(wire::ClusterEvent note);
  const std::deque<wire::ClusterEvent>& notes() const { return notes_; }

 private:
  std::uint64_t next_ = 1;
  std::deque<wire::ClusterEvent> notes_;
};

}  // namespace troupe::head
