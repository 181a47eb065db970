#include "head/core/machine/event_history.h"

#include <utility>

#include "runtime/base/text.h"

namespace troupe::head {

void EventHistory::Add(wire::ClusterEvent note) {
  note.number = next_++;
  note.message.resize(CutText(note.message, kTextMax).size());
  notes_.push_back(std::move(note));
  if (notes_.size() > kNotesMax) notes_.pop_front();
}

}  // namespace troupe::head
