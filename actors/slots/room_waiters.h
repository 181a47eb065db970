// Waits for room in a queue: answers that are done once there is some.
//
// Takes no lock: its owner's mutex guards it. The answers are handed back as a list, to be told of
// (Completions, CallReactor::NotifyAll) once that mutex is free.
#pragma once

#include <utility>
#include <vector>

#include "actors/slots/answer.h"

namespace troupe::actors {

class RoomWaiters {
 public:
  /// An answer that Open() finishes; the caller owns the reference.
  AnswerRef Wait() {
    waiting_.emplace_back(Answer::New(0));
    return AnswerRef::Another(waiting_.back().get());
  }
  /// There is room: whoever waits is to look again.
  void Open(AnswerList* finished) {
    for (AnswerRef& each : std::exchange(waiting_, {})) FinishInto(std::move(each), finished);
  }

 private:
  std::vector<AnswerRef> waiting_;
};

}  // namespace troupe::actors
