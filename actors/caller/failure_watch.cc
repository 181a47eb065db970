#include "actors/caller/failure_watch.h"

#include <utility>

#include "runtime/base/check.h"

namespace troupe::actors {

void FailureWatch::Hang(Answer* slot) {
  TROUPE_CHECK(hung_.size() < hung_.capacity(),
               "a FailureWatch hangs on more slots than it has room for");
  if (!slot->done()) {
    Hung& hung = hung_.emplace_back();
    hung.slot = AnswerRef::Another(slot);
    hung.node.failures = this;
    LinkNode(slot, hung.node);
    if (slot->WatchFailure()) return;
  }
  if (slot->failed()) Meet();
}

bool FailureWatch::UnhangSome(std::size_t most, AnswerList* loose) {
  for (; most > 0 && !hung_.empty(); --most) {
    UnlinkNode(hung_.back().slot.get(), hung_.back().node);
    loose->push_back(std::move(hung_.back().slot));
    hung_.pop_back();
  }
  return !hung_.empty();
}

}  // namespace troupe::actors
