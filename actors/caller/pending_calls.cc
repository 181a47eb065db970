#include "actors/caller/pending_calls.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>

#include "actors/caller/pending_arguments.h"
#include "actors/core/call/call_frame.h"
#include "actors/caller/call_holds.h"
#include "actors/objects/object_store.h"
#include "actors/caller/reactor.h"
#include "actors/core/remote/value_refs.h"

namespace troupe::actors {
namespace {

/// From which size on a value that lies in memory goes by name. Where it is not known yet on which host the actor is to
/// be, those that the frame has room for are copied: so much works wherever it will be.
std::size_t NamedFrom(PendingTarget::Place place, std::size_t used) {
  if (place == PendingTarget::Place::kHere) return 0;
  const std::size_t room = RoomBeside(used);
  return place == PendingTarget::Place::kRemote ? std::min(room, BulkSession::kFromBytes) : room;
}

store::ObjectId RemoteNameOf(const store::ObjectId& id) {
  ObjectStore* const store = ObjectStore::Existing();
  return store != nullptr ? store->RemoteNameOf(id) : id;
}

void TellAll(const SlotList& finished) { CallReactor::Current().NotifyAll(finished, false); }

}  // namespace

class PendingCalls::RoomOpen : public Completion {
 public:
  explicit RoomOpen(std::shared_ptr<PendingCalls> line) : line_(std::move(line)) {}
  void Run() override {
    {
      const std::lock_guard lock(line_->mutex_);
      line_->awaits_room_ = false;
    }
    line_->Go();
  }

 private:
  const std::shared_ptr<PendingCalls> line_;
};

PendingCalls::PendingCalls(std::weak_ptr<PendingTarget> target, std::string description, bool ordered, const ArgumentCodec& values)
    : target_(std::move(target)), description_(std::move(description)), ordered_(ordered), values_(values) {}

PendingCalls::~PendingCalls() {
  for (auto& [number, kept] : calls_) kept.slot->Release();  // the process ends: nobody waits any more
  for (Slot* slot : room_waiters_) slot->Release();
}

Slot* PendingCalls::Keep(Call call) {
  CallReactor& reactor = CallReactor::Current();
  Slot* slot = Slot::New(reactor.NextLocalId());
  slot->AddReference();
  std::vector<SlotHold> to_come;
  std::uint64_t number;
  bool go;
  {
    const std::lock_guard lock(mutex_);
    number = next_++;
    for (const ArgumentToCome& each : call.to_come) {
      each.answer.get()->AddReference();
      to_come.emplace_back(each.answer.get());
    }
    const std::size_t bytes = call.frame.size();
    bytes_ += bytes;
    go = to_come.empty();
    calls_.emplace(number, Kept{std::move(call), slot, to_come.size(), bytes});
    size_.store(calls_.size(), std::memory_order_release);
    untaken_.fetch_add(1, std::memory_order_release);
  }
  for (SlotHold& answer : to_come) {
    Slot* const argument = answer.get();
    static_cast<void>(reactor.OnDone(
        argument, std::make_unique<ArgumentDone<PendingCalls>>(shared_from_this(), number, std::move(answer))));
  }
  if (go) Go();  // those before it may have left just now
  return slot;
}

Slot* PendingCalls::WhenRoom() {
  const std::lock_guard lock(mutex_);
  if (calls_.size() < kCallsMax && bytes_ < kBytesMax) return nullptr;
  Slot* slot = Slot::New(0);
  slot->AddReference();
  room_waiters_.push_back(slot);
  return slot;
}

void PendingCalls::ForEach(const std::function<void(Slot*)>& look) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, call] : calls_) look(call.slot);
}

bool PendingCalls::Cancel(const Slot* answer) {
  SlotList finished;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(calls_.begin(), calls_.end(),
                                    [&](const auto& each) { return each.second.slot == answer; });
    if (found == calls_.end()) return false;
    ByteBuffer body;
    AppendRuntimeError(body, ErrorCode::kCancelled,
                       absl::StrFormat("%s() was cancelled by its caller before it began", found->second.call.method));
    AnswerLocked(found->second, kFlagReply | kFlagRuntimeError, body.view(), &finished);
    EraseLocked(found, &finished);
  }
  TellAll(finished);
  Go();  // those behind it
  return true;
}

void PendingCalls::ArgumentHere(std::uint64_t number, const Slot& answer) {
  SlotList finished;
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(number);
    if (found == calls_.end()) return;  // cancelled, or another argument failed
    if ((answer.flags() & kErrorFlags) != 0) {
      AnswerLocked(found->second, kFlagReply | kFlagOfArgument | (answer.flags() & kErrorFlags), answer.bytes(), &finished);
      EraseLocked(found, &finished);
    } else {
      --found->second.missing;
    }
  }
  TellAll(finished);
  Go();
}

/// Sends what can go.
void PendingCalls::Go() {
  SlotList finished;
  const std::shared_ptr<PendingTarget> target = target_.lock();
  {
    const std::lock_guard lock(mutex_);
    if (awaits_room_ && target != nullptr && target->Usable()) return;
    for (auto at = calls_.begin(); at != calls_.end();) {
      Kept& kept = at->second;
      Sent sent = Sent::kGone;
      if (target == nullptr) {
        ByteBuffer body;
        AppendRuntimeError(body, ErrorCode::kNotSent,
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

PendingCalls::Sent PendingCalls::SendLocked(PendingTarget& target, Kept& kept, SlotList* finished) {
  if (target.Usable()) {  // else its answer is the channel's, whatever it asks
    if (kept.missing != 0) return Sent::kStays;
    const SlotHold room(target.WhenRoom());
    if (room.get() != nullptr) {
      awaits_room_ = true;
      static_cast<void>(CallReactor::Current().OnDone(room.get(), std::make_unique<RoomOpen>(shared_from_this())));
      return Sent::kFull;
    }
    if (!kept.call.to_come.empty() && !FillInLocked(target.place(), kept, finished)) return Sent::kGone;
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
  target.IssueKept(frame, flags, kept.slot, kept.call.items);
  if (held != nullptr) static_cast<void>(CallReactor::Current().OnDone(kept.slot, std::move(held)));
  const std::uint64_t taken = kept.call.items != nullptr ? kept.call.items->taken().items : 0;
  if (taken != 0) target.Taken(kept.slot, taken);
  return Sent::kGone;
}

/// All its arguments are there. False: it was answered, for they cannot be sent.
bool PendingCalls::FillInLocked(PendingTarget::Place place, Kept& kept, SlotList* finished) {
  std::string frame;
  std::size_t from = 0;
  bool good = true;
  for (const ArgumentToCome& each : kept.call.to_come) {
    frame.append(kept.call.frame, from, each.at - from);
    from = each.at;
    const std::size_t named_from = NamedFrom(place, frame.size() + kept.call.frame.size() - from);
    const std::size_t at = frame.size();
    good = good && values_.AppendAnswer(*each.answer.get(), named_from, &frame, &kept.call.held);
    if (place == PendingTarget::Place::kRemote) RenameRefs(frame.data() + at, frame.size() - at, RemoteNameOf);
  }
  frame.append(kept.call.frame, from);
  kept.call.to_come.clear();
  if (good && PaddedTo8(frame.size()) <= CallLimits().frame_bytes_max) {
    kept.call.frame = std::move(frame);
    return true;
  }
  ByteBuffer body;
  AppendRuntimeError(body, good ? ErrorCode::kTooLarge : ErrorCode::kInternal,
                     good ? ArgumentsTooLarge(kept.call.method, frame.size(), CallLimits())
                          : "an argument of " + kept.call.method + "() has an answer that is no value");
  AnswerLocked(kept, kFlagReply | kFlagRuntimeError, body.view(), finished);
  return false;
}

void PendingCalls::AnswerLocked(Kept& kept, std::uint16_t flags, std::string_view body, SlotList* finished) {
  untaken_.fetch_sub(1, std::memory_order_release);
  if (kept.call.items != nullptr) kept.call.items->End(flags, body, finished);
  kept.slot->Fill(flags, body);
  kept.slot->AddReference();
  FinishInto(kept.slot, finished);
}

PendingCalls::Calls::iterator PendingCalls::EraseLocked(Calls::iterator at, SlotList* finished) {
  Kept& kept = at->second;
  bytes_ -= kept.bytes;
  kept.slot->Release();
  const auto next = calls_.erase(at);
  size_.store(calls_.size(), std::memory_order_release);
  if (calls_.size() > kCallsMax / 2 || bytes_ > kBytesMax / 2) return next;
  for (Slot* slot : std::exchange(room_waiters_, {})) FinishInto(slot, finished);
  return next;
}

}  // namespace troupe::actors
