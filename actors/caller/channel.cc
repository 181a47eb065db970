#include "actors/caller/channel.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>

#include "actors/caller/pending_calls.h"
#include "actors/core/session/flow_control.h"
#include "actors/caller/reactor.h"
#include "runtime/base/check.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kReadBytes = 256u << 10;
constexpr std::size_t kReadSpaceMin = 32u << 10;

}  // namespace

SlotHold Channel::NewSlotLocked(std::shared_ptr<ItemStream> items) {
  const std::uint64_t sequence = ring_.next_sequence();
  items_.Add(sequence, std::move(items));
  return SlotHold(Slot::New(id_ << 40 | sequence));
}

bool Channel::FullLocked() const {
  const SendWindow& window = session_.window();
  return aimless_ ? CallerFlow::FullAimless(window.kept_bytes(), ring_.size())
                  : CallerFlow::Full(window.unsent_bytes(), window.kept_bytes(), ring_.size());
}

bool Channel::QueueLocked(ByteBuffer& frame, std::uint16_t flags, Slot* slot) {
  SendWindow& window = session_.window();
  const std::size_t outstanding = ring_.size();
  const std::uint64_t sequence = ring_.Put(SlotHold::Of(slot));
  SealFrame(frame, flags, sequence, session_.TakeAck());
  window.Append(frame.view());
  slot->end_offset = window.end_offset();
  ++unflushed_frames_;
  if (!CallerFlow::FlushNow(outstanding, unflushed_frames_, window.unsent_bytes())) {
    if (!stranded_) {
      stranded_ = true;
      reactor_.MarkStranded(id_);
    }
    return false;
  }
  FlushLocked();
  return attached_.load(std::memory_order_relaxed) &&
         CallerFlow::Drain(outstanding, window.unsent_bytes() != 0);
}

/// A call with this slot, whatever there is room for. True: replies should be read.
bool Channel::IssueLocked(ByteBuffer& frame, std::uint16_t flags, Slot* slot) {
  switch (fates_.Arrives(ring_.size() < CallerFlow::kOutstandingMax)) {
    case CallFates::Arrival::kSend:
      return QueueLocked(frame, flags, slot);
    case CallFates::Arrival::kWait:
      ring_.Put(SlotHold::Of(slot));
      slot->end_offset = CallFates::kNeverSent;
      return false;
    case CallFates::Arrival::kTell:
      break;
  }
  const CallFates::Fate fate = fates_.OfNewCall();
  slot->Fill(fate.flags, fate.body);
  items_.End(SequenceOf(slot), slot->flags(), slot->bytes(), &finished_);
  FinishInto(SlotHold::Of(slot), &finished_);
  return false;
}

Channel::Call Channel::Issue(ByteBuffer& frame, std::uint16_t flags,
                             std::shared_ptr<ItemStream> items) {
  std::unique_lock lock(mutex_);
  if (OutstandingLocked() >= options_.outstanding_max) return {Issued::kTooMany, {}};
  if (fates_.open() && FullLocked()) return {Issued::kFull, {}};
  SlotHold answer = NewSlotLocked(std::move(items));
  const bool drain = IssueLocked(frame, flags, answer.get());
  if (!finished_.empty()) {
    SlotList finished;
    finished.swap(finished_);
    lock.unlock();
    NotifyFinished(finished, false);
  }
  return {drain ? Issued::kOkDrain : Issued::kOk, std::move(answer)};
}

Channel::Issued Channel::IssueInto(ByteBuffer& frame, std::uint16_t flags, Slot* answer,
                                   std::shared_ptr<ItemStream> items) {
  const std::lock_guard lock(mutex_);
  if (!fates_.open()) return Issued::kEnded;
  if (FullLocked()) return Issued::kFull;
  const std::uint64_t sequence = ring_.next_sequence();
  answer->set_call(id_ << 40 | sequence);
  items_.Add(sequence, std::move(items));
  QueueLocked(frame, flags, answer);
  return Issued::kOk;
}

void Channel::Taken(const Slot* answer, std::uint64_t items) {
  Tell(ControlKind::kTaken, answer, items);
}

void Channel::Cancel(const Slot* answer, bool recursive) {
  PendingCalls* const waiting = line();
  if (waiting != nullptr && waiting->Cancel(answer)) return;
  Tell(ControlKind::kCancel, answer, recursive ? 1 : 0);
}

void Channel::CancelStartedBy(std::uint64_t call) {
  SlotList made;
  const auto look = [&](Slot* slot) {
    if (slot->started_by() == call) made.push_back(SlotHold::Of(slot));
  };
  if (PendingCalls* const waiting = line()) waiting->ForEach(look);
  const auto unsent = static_cast<std::ptrdiff_t>(made.size());
  {
    const std::lock_guard lock(mutex_);
    ring_.ForEach([&](const SlotHold& slot) { look(slot.get()); });
  }
  // The newest first: what runs hears of it last, so that nothing behind it begins because it is over.
  std::reverse(made.begin() + unsent, made.end());
  for (const SlotHold& slot : made) Cancel(slot.get(), /*recursive=*/true);
}

void Channel::Tell(ControlKind kind, const Slot* answer, std::uint64_t count) {
  SlotList finished;
  {
    const std::lock_guard lock(mutex_);
    const bool ours = answer->call() >> 40 == id_;  // not an item's
    if (!fates_.open() || !ours || !ring_.Holds(SequenceOf(answer))) return;
    session_.AppendOfCall(kind, SequenceOf(answer), count);
    FlushLocked();
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
}

SlotHold Channel::WhenRoom() {
  std::lock_guard lock(mutex_);
  if (!fates_.open() || HasRoomLocked()) return {};
  return AwaitRoomLocked(/*idle=*/false);
}

SlotHold Channel::WhenIdle() {
  std::lock_guard lock(mutex_);
  if (!fates_.open() || OutstandingLocked() == 0) return {};
  return AwaitRoomLocked(/*idle=*/true);
}

SlotHold Channel::AwaitRoomLocked(bool idle) {
  SlotHold slot(Slot::New(0));
  room_waiters_.push_back({SlotHold::Of(slot.get()), idle});
  return slot;
}

bool Channel::HasRoomLocked() const {
  const SendWindow& window = session_.window();
  return CallerFlow::HasRoom(window.unsent_bytes(), window.kept_bytes(), ring_.size());
}

void Channel::OpenRoomLocked() {
  if (room_waiters_.empty()) return;
  const bool over = !fates_.open();
  const bool room = over || HasRoomLocked();
  const bool idle = over || OutstandingLocked() == 0;
  std::vector<RoomWaiter> waiters;
  waiters.swap(room_waiters_);
  for (RoomWaiter& waiter : waiters) {
    if (waiter.idle ? idle : room) {
      FinishInto(std::move(waiter.slot), &finished_);
    } else {
      room_waiters_.push_back(std::move(waiter));
    }
  }
}

void Channel::NotifyFinished(const SlotList& finished, bool as_leader) {
  reactor_.NotifyAll(finished, as_leader);
}

void Channel::TellObserver(bool as_leader) {
  if (options_.observer == nullptr) return;
  std::vector<ObservedAnswer> answers;
  {
    const std::lock_guard lock(mutex_);
    answers.swap(observed_);
  }
  if (!answers.empty()) options_.observer->Answered(id_, std::move(answers), as_leader);
}

void Channel::Flush() {
  SlotList finished;
  {
    std::lock_guard lock(mutex_);
    stranded_ = false;
    if (!fates_.open()) return;
    FlushLocked();
    OpenRoomLocked();  // a call of the line may have ended without going
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
}

void Channel::FlushLocked() {
  if (!attached_.load(std::memory_order_relaxed) || broken_) return;
  unflushed_frames_ = 0;
  SendWindow& window = session_.window();
  while (true) {
    const std::string_view unsent = window.Unsent();
    if (unsent.empty() && !stream_.HasUnsent()) break;
    const IoResult wrote = stream_.TryWrite(unsent.data(), unsent.size());
    if (wrote.outcome == IoOutcome::kEnded) {
      // Replies sent before the end may still be unread: only reading tells that the stream is
      // over. The leader's Read finds the end; until then nothing more is written.
      broken_ = true;
      reactor_.WatchWrites(*this, false);
      write_armed_ = false;
      return;
    }
    if (wrote.outcome == IoOutcome::kWouldBlock) {
      if (!write_armed_) reactor_.WatchWrites(*this, true);
      write_armed_ = true;
      return;
    }
    window.Sent(wrote.bytes);
    OpenRoomLocked();
  }
  if (write_armed_) reactor_.WatchWrites(*this, false);
  write_armed_ = false;
}

bool Channel::Read() {
  if (!attached_.load(std::memory_order_acquire)) return false;
  if (in_.spare() < kReadSpaceMin) {
    Frame frame;
    std::string ignored;
    std::size_t need = kReadBytes;
    if (ParseFrame(in_.view(), options_.limits, &frame, &ignored) == ParseOutcome::kNeedMore &&
        frame.bytes > in_.size()) {
      // Memory follows what has arrived: a header alone cannot make this side allocate 16 MiB.
      need = std::min(std::max(kReadBytes, frame.bytes - in_.size()),
                      std::max(kReadBytes, in_.size()));
    }
    in_.Reserve(need);
  }
  const IoResult got = stream_.TryRead(in_.tail(), in_.spare());
  if (got.outcome == IoOutcome::kWouldBlock) return false;
  std::string why;
  bool good = true;
  if (got.outcome == IoOutcome::kProgress) {
    in_.Commit(got.bytes);
    good = TakeReplies(&why);
    if (good) return true;
    why = "it sent " + why;
  } else {
    why = stream_.WhyEnded(got);
  }
  SlotList finished;
  {
    std::lock_guard lock(mutex_);
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
  SlotList finished;
  bool good = true;
  {
    std::lock_guard lock(mutex_);
    if (!fates_.open()) {
      in_.Clear();
      return true;
    }
    std::string_view bytes = in_.view();
    std::size_t used = 0;
    std::uint64_t calls_received = 0;
    Frame frame;
    while (good) {
      const ParseOutcome outcome = ParseFrame(bytes.substr(used), options_.limits, &frame, why);
      if (outcome == ParseOutcome::kNeedMore) break;
      good = outcome == ParseOutcome::kFrame && TakeReplyLocked(frame, &calls_received, why);
      if (good) used += frame.bytes;
    }
    in_.Consume(used);
    in_.Shrink(4 * kReadBytes);
    if (good && !session_.Acknowledge(calls_received)) {
      *why = "an acknowledgement of calls that it was not sent";
      good = false;
    }
    if (good && session_.AckDue()) {
      session_.AppendAck();
      FlushLocked();
    }
    OpenRoomLocked();
    finished.swap(finished_);
  }
  NotifyFinished(finished, true);
  TellObserver(true);
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
  SlotHold slot = ring_.Take(frame.head.sequence);
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

/// It is filled: those who wait for it, or the observer, are to hear of it.
void Channel::FinishLocked(SlotHold slot, std::uint64_t sequence, ObservedAnswer::Lost lost) {
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
  const Status taken =
      control.ok() ? session_.Control(*control, frame.head.ack) : control.status();
  if (!taken.ok()) {
    *why = MessageOf(taken);
    return false;
  }
  if (control->kind != ControlKind::kWelcome) return true;
  redial_.Welcomed();
  ExpectLocked(false);
  BeginBulkSessionLocked();
  items_.ForEach([&](std::uint64_t sequence, const ItemStream& items) {
    // Control frames are not sent again.
    session_.AppendOfCall(ControlKind::kTaken, sequence, items.taken().items);
  });
  FlushLocked();
  return true;
}

bool Channel::Usable() {
  std::lock_guard lock(mutex_);
  return fates_.open();
}

std::size_t Channel::Outstanding() {
  std::lock_guard lock(mutex_);
  return OutstandingLocked();
}

}  // namespace troupe::actors
