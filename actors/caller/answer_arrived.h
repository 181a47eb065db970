// Tells a channel's observer of an answer that was complete only once its memory, or that of the
// items before it, was mapped here: the observer may end the process that made it as soon as it
// hears.
//
// Owns the answer until then. Runs on the reactor's background thread, or on the thread that
// brought the last item.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "actors/caller/call_observer.h"
#include "actors/core/call/call_frame.h"
#include "actors/objects/object_store.h"
#include "actors/slots/answer.h"
#include "actors/slots/waiter.h"

namespace troupe::actors {

/// A result can be lost after its frame came, with the process that made it.
inline bool LostOnTheWay(const Answer& slot) {
  return (slot.flags() & kFlagRuntimeError) != 0 &&
         ReadRuntimeError(slot.bytes()).code == kResultLost;
}

class AnswerArrived final : public Completion {
 public:
  AnswerArrived(std::shared_ptr<CallObserver> observer, std::uint64_t channel, AnswerRef slot)
      : observer_(std::move(observer)), channel_(channel), slot_(std::move(slot)) {}
  void Run() override { Tell(LostOnTheWay(*slot_)); }
  /// Once.
  void Tell(bool lost) {
    using Lost = ObservedAnswer::Lost;
    std::vector<ObservedAnswer> answers;
    answers.push_back({std::move(slot_), lost ? Lost::kMaybeExecuted : Lost::kNo});
    observer_->Answered(channel_, std::move(answers), /*as_leader=*/false);
  }

 private:
  const std::shared_ptr<CallObserver> observer_;
  const std::uint64_t channel_;
  AnswerRef slot_;
};

}  // namespace troupe::actors
