#include "actors/caller/pending_calls.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "actors/caller/call_holds.h"
#include "actors/caller/reactor.h"
#include "actors/core/call/call_frame.h"

namespace troupe::actors {
namespace {

void TellAll(const AnswerList& finished) { CallReactor::Current().NotifyAll(finished, false); }

}  // namespace

class PendingCalls::RoomOpen : public Completion {
 public:
  explicit RoomOpen(std::shared_ptr<PendingCalls> line) : line_(std::move(line)) {}
  void Run() override { line_->RoomCame(); }

 private:
  const std::shared_ptr<PendingCalls> line_;
};

PendingCalls::PendingCalls(std::weak_ptr<PendingTarget> target, std::string description,
                           bool ordered, const ArgumentCodec& values)
    : target_(std::move(target)),
      description_(std::move(description)),
      ordered_(ordered),
      values_(values) {}

PendingCalls::~PendingCalls() = default;

AnswerRef PendingCalls::Keep(Call call) {
  AnswerRef slot(Answer::New(CallReactor::Current().NextLocalId()));
  std::vector<AnswerRef> to_come = call.to_come.Answers();
  const bool go = to_come.empty();
  std::uint64_t number;
  {
    const MutexLock lock(mutex_);
    number = next_++;
    const std::size_t bytes = call.frame.size();
    bytes_ += bytes;
    calls_.emplace(number, Kept{std::move(call), AnswerRef::Another(slot.get()), bytes});
    size_.store(calls_.size(), std::memory_order_release);
    untaken_.fetch_add(1, std::memory_order_release);
  }
  AwaitArguments(shared_from_this(), number, std::move(to_come));
  if (go) Go();  // calls before it may have left just now
  return slot;
}

AnswerRef PendingCalls::WhenRoom() {
  const MutexLock lock(mutex_);
  if (calls_.size() < kCallsMax && bytes_ < kBytesMax) return AnswerRef();
  return room_.Wait();
}

void PendingCalls::ForEach(const std::function<void(Answer*)>& look) {
  const MutexLock lock(mutex_);
  for (const auto& [number, call] : calls_) look(call.slot.get());
}

bool PendingCalls::Cancel(const Answer* answer) {
  AnswerList finished;
  {
    const MutexLock lock(mutex_);
    const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const auto& each) {
      return each.second.slot.get() == answer;
    });
    if (found == calls_.end()) return false;
    ByteBuffer body;
    AppendRuntimeError(body, ErrorCode::kCancelled,
                       absl::StrFormat("%s() was cancelled by its caller before it began",
                                       found->second.call.method));
    AnswerLocked(found->second, kFlagReply | kFlagRuntimeError, body.view(), &finished);
    EraseLocked(found, &finished);
  }
  TellAll(finished);
  Go();  // calls behind it
  return true;
}

void PendingCalls::ArgumentHere(std::uint64_t number, const Answer& answer) {
  AnswerList finished;
  {
    const MutexLock lock(mutex_);
    const auto found = calls_.find(number);
    if (found == calls_.end()) return;  // cancelled, or another argument failed
    if (found->second.call.to_come.Note(answer) == PendingArguments::Came::kFailed) {
      AnswerLocked(found->second, FlagsOfFailedArgument(answer), answer.bytes(), &finished);
      EraseLocked(found, &finished);
    }
  }
  TellAll(finished);
  Go();
}

void PendingCalls::RoomCame() {
  {
    const MutexLock lock(mutex_);
    awaits_room_ = false;
  }
  Go();
}

/// Sends what can go.
void PendingCalls::Go() {
  AnswerList finished;
  const std::shared_ptr<PendingTarget> target = target_.lock();
  {
    const MutexLock lock(mutex_);
    if (awaits_room_ && target != nullptr && target->Usable()) return;
    for (auto at = calls_.begin(); at != calls_.end();) {
      Kept& kept = at->second;
      Sent sent = Sent::kGone;
      if (target == nullptr) {
        ByteBuffer body;
        AppendRuntimeError(
            body, ErrorCode::kNotSent,
            description_ + ": its channel was closed here; the call had not been sent");
        AnswerLocked(kept, kFlagReply | kFlagRuntimeError, body.view(), &finished);
      } else {
        sent = SendLocked(*target, kept, &finished);
      }
      if (sent == Sent::kFull) break;
      if (sent == Sent::kGone) {
        at = EraseLocked(at, &finished);
      } else if (ordered_) {
        break;
      } else {
        ++at;
      }
    }
  }
  TellAll(finished);
  if (target != nullptr) target->Flush();
}

PendingCalls::Sent PendingCalls::SendLocked(PendingTarget& target, Kept& kept,
                                            AnswerList* finished) {
  if (target.Usable()) {  // else its answer is the channel's, whatever it asks
    if (kept.call.to_come.missing()) return Sent::kStays;
    const AnswerRef room(target.WhenRoom());
    if (room.get() != nullptr) {
      awaits_room_ = true;
      static_cast<void>(CallReactor::Current().OnDone(
          room.get(), std::make_unique<RoomOpen>(shared_from_this())));
      return Sent::kFull;
    }
    if (!kept.call.to_come.empty() && !FillInLocked(target.place(), kept, finished))
      return Sent::kGone;
  }
  ByteBuffer frame;
  frame.Append(kept.call.frame.data(), kept.call.frame.size());
  std::uint16_t flags = kept.call.flags;
  std::unique_ptr<CallHolds> held;
  if (!kept.call.held.empty()) {
    flags |= kFlagObjects;
    const bool here = target.place() == PendingTarget::Place::kHere;
    held = std::make_unique<CallHolds>(std::move(kept.call.held), here ? nullptr : target.Bulk());
  }
  target.IssueKept(frame, flags, kept.slot.get(), kept.call.items);
  if (held != nullptr)
    static_cast<void>(CallReactor::Current().OnDone(kept.slot.get(), std::move(held)));
  const std::uint64_t taken = kept.call.items != nullptr ? kept.call.items->taken().items : 0;
  if (taken != 0) target.Taken(kept.slot.get(), taken);
  return Sent::kGone;
}

/// All its arguments are there. False: it was answered, for they cannot be sent.
bool PendingCalls::FillInLocked(PendingTarget::Place place, Kept& kept, AnswerList* finished) {
  Call& call = kept.call;
  using Filled = PendingArguments::Filled;
  const Filled filled = call.to_come.FillIn(place, /*beside=*/0, values_, &call.frame, &call.held);
  if (filled == Filled::kGood) return true;
  const bool large = filled == Filled::kTooLarge;
  ByteBuffer body;
  AppendRuntimeError(body, large ? ErrorCode::kTooLarge : ErrorCode::kInternal,
                     large ? ArgumentsTooLarge(call.method, call.frame.size(), CallLimits())
                           : "an argument of " + call.method + "() has an answer that is no value");
  AnswerLocked(kept, kFlagReply | kFlagRuntimeError, body.view(), finished);
  return false;
}

void PendingCalls::AnswerLocked(Kept& kept, std::uint16_t flags, std::string_view body,
                                AnswerList* finished) {
  untaken_.fetch_sub(1, std::memory_order_release);
  if (kept.call.items != nullptr) kept.call.items->End(flags, body, finished);
  kept.slot->Fill(flags, body);
  FinishInto(AnswerRef::Another(kept.slot.get()), finished);
}

PendingCalls::Calls::iterator PendingCalls::EraseLocked(Calls::iterator at, AnswerList* finished) {
  bytes_ -= at->second.bytes;
  const auto next = calls_.erase(at);
  size_.store(calls_.size(), std::memory_order_release);
  if (calls_.size() > kCallsMax / 2 || bytes_ > kBytesMax / 2) return next;
  room_.Open(finished);
  return next;
}

}  // namespace troupe::actors
