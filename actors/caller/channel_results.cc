// Input of a channel: frames, answers of calls, values in memory, items of streams.
#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>

#include "actors/bulk/bulk_session.h"
#include "actors/caller/answer_arrived.h"
#include "actors/caller/channel.h"
#include "actors/caller/reactor.h"
#include "actors/objects/object_store.h"

namespace troupe::actors {

bool Channel::Read() {
  if (!stream_.attached()) return false;
  const IoResult got = stream_.Read(options_.limits);
  if (got.outcome == IoOutcome::kWouldBlock) return false;
  std::string why;
  bool good = true;
  if (got.outcome == IoOutcome::kProgress) {
    good = TakeReplies(&why);
    if (good) return true;
    why = "it sent " + why;
  } else {
    why = stream_.WhyEnded(got);
  }
  AnswerList finished;
  {
    MutexLock lock(mutex_);
    if (!good || !LoseLocked(why)) {
      EndLocked(why);
      if (!good) FailLocked(fates_.end_reason());
    }
    finished.swap(finished_);
  }
  NotifyFinished(finished, true);
  TellObserver(true);
  return true;
}

bool Channel::TakeReplies(std::string* why) {
  AnswerList finished;
  bool good;
  {
    MutexLock lock(mutex_);
    good = TakeRepliesLocked(why);
    finished.swap(finished_);
  }
  NotifyFinished(finished, true);
  TellObserver(true);
  return good;
}

/// All whole frames that have come. False: one of them may not come, and `*why` says it.
bool Channel::TakeRepliesLocked(std::string* why) {
  if (!fates_.open()) {
    stream_.in().Clear();
    return true;
  }
  const std::string_view bytes = stream_.in().view();
  bool good = true;
  std::size_t used = 0;
  std::uint64_t calls_received = 0;
  Frame frame;
  while (good) {
    const ParseOutcome outcome = ParseFrame(bytes.substr(used), options_.limits, &frame, why);
    if (outcome == ParseOutcome::kNeedMore) break;
    good = outcome == ParseOutcome::kFrame && TakeReplyLocked(frame, &calls_received, why);
    if (good) used += frame.bytes;
  }
  stream_.Used(used);
  if (good && !session_.Acknowledge(calls_received)) {
    *why = "an acknowledgement of calls that it was not sent";
    good = false;
  }
  if (good && session_.AckDue()) {
    session_.AppendAck();
    FlushLocked();
  }
  OpenRoomLocked();
  return good;
}

bool Channel::TakeReplyLocked(const Frame& frame, std::uint64_t* calls_received, std::string* why) {
  const std::uint16_t flags = frame.head.flags;
  if ((flags & kFlagControl) != 0) return TakeControlLocked(frame, why);
  if ((flags & kFlagGoodbye) != 0) {
    *why = absl::StrFormat("'%s' and closed", ReadRuntimeError(frame.body).text);
    return false;
  }
  if ((flags & kFlagReply) == 0) {
    *why = "a call to this side, which serves none";
    return false;
  }
  if (!session_.Reply(frame.bytes)) {
    *why = "a reply before it greeted";
    return false;
  }
  *calls_received = std::max(*calls_received, frame.head.ack);
  if ((flags & kFlagItem) != 0) return TakeItemLocked(frame, why);
  AnswerRef slot = ring_.Take(frame.head.sequence);
  if (slot == nullptr) {
    *why = absl::StrFormat("a reply to call %u, which is not outstanding", frame.head.sequence);
    return false;
  }
  if ((flags & kFlagObjects) != 0) {
    if (options_.observer != nullptr) return TakeObservedResultLocked(std::move(slot), frame, why);
    if (!items_.empty()) items_.End(frame.head.sequence, flags, frame.body, &finished_);
    return TakeResultLocked(std::move(slot), frame, why);
  }
  if (slot->Abandoned() && options_.observer == nullptr) {
    if (!items_.empty()) items_.End(frame.head.sequence, flags, frame.body, &finished_);
    return true;
  }
  slot->Fill(flags, frame.body);
  ObservedAnswer::Lost lost = ObservedAnswer::Lost::kNo;
  if (items_.arriving()) {
    const auto seen = items_.AfterItems(frame.head.sequence, slot);
    if (!seen) return true;
    lost = *seen;
  }
  FinishLocked(std::move(slot), frame.head.sequence, lost);
  return true;
}

void Channel::FinishLocked(AnswerRef slot, std::uint64_t sequence, ObservedAnswer::Lost lost) {
  if (options_.observer != nullptr) {
    items_.Forget(sequence);
    observed_.push_back({std::move(slot), lost});
    return;
  }
  if (!items_.empty()) items_.End(sequence, slot->flags(), slot->bytes(), &finished_);
  FinishInto(std::move(slot), &finished_);
}

bool Channel::TakeControlLocked(const Frame& frame, std::string* why) {
  const StatusOr<CallControl> control = ParseControl(frame);
  const Status taken = control.ok() ? session_.Control(*control, frame.head.ack) : control.status();
  if (!taken.ok()) {
    *why = MessageOf(taken);
    return false;
  }
  if (control->kind != ControlKind::kWelcome) return true;
  route_.Welcomed();
  ExpectLocked(false);
  BeginBulkSessionLocked();
  items_.ForEach([this](std::uint64_t sequence, const ItemStream& items) {
    mutex_.AssertHeld();
    // Control frames are not sent again.
    session_.AppendOfCall(ControlKind::kTaken, sequence, items.taken().items);
  });
  FlushLocked();
  return true;
}

/// The actor named no memory where it had to: the call's answer is an error that says so.
void Channel::FillBadResult(Answer& slot, std::string* why) {
  *why = kBadResult;
  ByteBuffer body;
  AppendRuntimeError(body, ErrorCode::kInternal, options_.description + " sent " + *why);
  slot.Fill(kFlagReply | kFlagRuntimeError, body.view());
}

/// The value lies in the actor's memory. It becomes this process's also where nobody wants it.
bool Channel::TakeResultLocked(AnswerRef slot, const Frame& frame, std::string* why) {
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
bool Channel::TakeObservedResultLocked(AnswerRef slot, const Frame& frame, std::string* why) {
  ObjectStore::Took took = ObjectStore::Took::kBad;
  if (frame.head.flags == (kFlagReply | kFlagObjects)) {
    Answer* const filled = slot.get();
    auto arrived =
        std::make_unique<AnswerArrived>(options_.observer, id_, AnswerRef::Another(filled));
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
  const auto take = [this](Answer* slot, std::string_view body, bool wanted,
                           ObjectStore::Then then) {
    mutex_.AssertHeld();
    return TakeObjectLocked(slot, body, wanted, std::move(then));
  };
  return items_.Take(frame, ring_.Holds(frame.head.sequence), take, &finished_, why);
}

}  // namespace troupe::actors
