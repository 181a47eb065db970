// Answers that are more than the bytes of one frame: values in memory, of one answer or of several.
#include <utility>

#include "actors/bulk/bulk_session.h"
#include "actors/caller/answer_arrived.h"
#include "actors/caller/channel.h"
#include "actors/caller/reactor.h"
#include "actors/objects/object_store.h"

namespace troupe::actors {

/// The actor named no memory where it had to: the call's answer is an error that says so.
void Channel::FillBadResult(Slot& slot, std::string* why) {
  *why = kBadResult;
  ByteBuffer body;
  AppendRuntimeError(body, ErrorCode::kInternal, options_.description + " sent " + *why);
  slot.Fill(kFlagReply | kFlagRuntimeError, body.view());
}

/// The value lies in the actor's memory. It becomes this process's also where nobody wants it.
bool Channel::TakeResultLocked(SlotHold slot, const Frame& frame, std::string* why) {
  ObjectStore::Took took = ObjectStore::Took::kBad;
  if (frame.head.flags == (kFlagReply | kFlagObjects)) {
    took = TakeObjectLocked(slot.get(), frame.body, /*wanted=*/!slot->Abandoned(), {});
  }
  if (took == ObjectStore::Took::kLater) return true;
  if (took == ObjectStore::Took::kBad) FillBadResult(*slot, why);
  FinishInto(std::move(slot), &finished_);
  return took != ObjectStore::Took::kBad;
}

/// TakeResultLocked where there is an observer, which hears of the value when it can be read.
bool Channel::TakeObservedResultLocked(SlotHold slot, const Frame& frame, std::string* why) {
  ObjectStore::Took took = ObjectStore::Took::kBad;
  if (frame.head.flags == (kFlagReply | kFlagObjects)) {
    Slot* const filled = slot.get();
    auto arrived = std::make_unique<AnswerArrived>(options_.observer, id_, SlotHold::Of(filled));
    took = TakeObjectLocked(filled, frame.body, /*wanted=*/true,
                            {std::move(arrived), /*fills_only=*/true});
  }
  if (took == ObjectStore::Took::kLater) {
    items_.Forget(frame.head.sequence);
    return true;
  }
  if (took == ObjectStore::Took::kBad) FillBadResult(*slot, why);
  FinishLocked(std::move(slot), frame.head.sequence, ObservedAnswer::Lost::kNo);
  return took != ObjectStore::Took::kBad;
}

bool Channel::TakeItemLocked(const Frame& frame, std::string* why) {
  const auto take = [this](Slot* slot, std::string_view body, bool wanted, ObjectStore::Then then) {
    return TakeObjectLocked(slot, body, wanted, std::move(then));
  };
  return items_.Take(frame, ring_.Holds(frame.head.sequence), take, &finished_, why);
}

}  // namespace troupe::actors
