#include "actors/caller/channel.h"

#include <algorithm>
#include <utility>

#include "actors/caller/pending_calls.h"
#include "actors/caller/reactor.h"
#include "actors/core/session/flow_control.h"

namespace troupe::actors {

AnswerRef Channel::NewSlotLocked(std::shared_ptr<ItemStream> items) {
  const std::uint64_t sequence = ring_.next_sequence();
  items_.Add(sequence, std::move(items));
  return AnswerRef(Answer::New(id_ << 40 | sequence));
}

bool Channel::FullLocked() const {
  const SendWindow& window = session_.window();
  return route_.aimless()
             ? CallerFlow::FullAimless(window.kept_bytes(), ring_.size())
             : CallerFlow::Full(window.unsent_bytes(), window.kept_bytes(), ring_.size());
}

bool Channel::QueueLocked(ByteBuffer& frame, std::uint16_t flags, Answer* slot) {
  SendWindow& window = session_.window();
  const std::size_t outstanding = ring_.size();
  const std::uint64_t sequence = ring_.Put(AnswerRef::Another(slot));
  SealFrame(frame, flags, sequence, session_.TakeAck());
  window.Append(frame.view());
  slot->end_offset = window.end_offset();
  ++unflushed_frames_;
  if (!CallerFlow::FlushNow(outstanding, unflushed_frames_, window.unsent_bytes())) {
    if (!std::exchange(reactor_knows_.stranded, true)) {
      reactor_.MarkStranded(id_);
    }
    return false;
  }
  FlushLocked();
  return stream_.attached() && CallerFlow::Drain(outstanding, window.unsent_bytes() != 0);
}

bool Channel::IssueLocked(ByteBuffer& frame, std::uint16_t flags, Answer* slot) {
  switch (fates_.Arrives(ring_.size() < CallerFlow::kOutstandingMax)) {
    case CallFates::Arrival::kSend:
      return QueueLocked(frame, flags, slot);
    case CallFates::Arrival::kWait:
      ring_.Put(AnswerRef::Another(slot));
      slot->end_offset = CallFates::kNeverSent;
      return false;
    case CallFates::Arrival::kTell:
      break;
  }
  const CallFates::Fate fate = fates_.OfNewCall();
  slot->Fill(fate.flags, fate.body);
  items_.End(SequenceOf(slot), slot->flags(), slot->bytes(), &finished_);
  FinishInto(AnswerRef::Another(slot), &finished_);
  return false;
}

Channel::Call Channel::Issue(ByteBuffer& frame, std::uint16_t flags,
                             std::shared_ptr<ItemStream> items) {
  MutexLock lock(mutex_);
  if (OutstandingLocked() >= options_.outstanding_max) return {Issued::kTooMany, {}};
  if (fates_.open() && FullLocked()) return {Issued::kFull, {}};
  AnswerRef answer = NewSlotLocked(std::move(items));
  const bool drain = IssueLocked(frame, flags, answer.get());
  if (!finished_.empty()) {
    AnswerList finished;
    finished.swap(finished_);
    lock.Unlock();
    NotifyFinished(finished, false);
  }
  return {drain ? Issued::kOkDrain : Issued::kOk, std::move(answer)};
}

Channel::Issued Channel::IssueInto(ByteBuffer& frame, std::uint16_t flags, Answer* answer,
                                   std::shared_ptr<ItemStream> items) {
  MutexLock lock(mutex_);
  if (!fates_.open()) return Issued::kEnded;
  if (FullLocked()) return Issued::kFull;
  const std::uint64_t sequence = ring_.next_sequence();
  answer->set_call(id_ << 40 | sequence);
  items_.Add(sequence, std::move(items));
  QueueLocked(frame, flags, answer);
  return Issued::kOk;
}

void Channel::Taken(const Answer* answer, std::uint64_t items) {
  Tell(ControlKind::kTaken, answer, items);
}

void Channel::Cancel(const Answer* answer, bool recursive) {
  PendingCalls* const waiting = line();
  if (waiting != nullptr && waiting->Cancel(answer)) return;
  Tell(ControlKind::kCancel, answer, recursive ? 1 : 0);
}

void Channel::CancelStartedBy(std::uint64_t call) {
  AnswerList made;
  const auto look = [&](Answer* slot) {
    if (slot->started_by() == call) made.push_back(AnswerRef::Another(slot));
  };
  if (PendingCalls* const waiting = line()) waiting->ForEach(look);
  const auto unsent = static_cast<std::ptrdiff_t>(made.size());
  {
    MutexLock lock(mutex_);
    ring_.ForEach([&](const AnswerRef& slot) { look(slot.get()); });
  }
  // The newest first: what runs hears of it last, so that nothing behind it begins because it is
  // over.
  std::reverse(made.begin() + unsent, made.end());
  for (const AnswerRef& slot : made) Cancel(slot.get(), /*recursive=*/true);
}

void Channel::Tell(ControlKind kind, const Answer* answer, std::uint64_t count) {
  AnswerList finished;
  {
    MutexLock lock(mutex_);
    const bool ours = answer->call() >> 40 == id_;  // not an item's
    if (!fates_.open() || !ours || !ring_.Holds(SequenceOf(answer))) return;
    session_.AppendOfCall(kind, SequenceOf(answer), count);
    FlushLocked();
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
}

AnswerRef Channel::WhenRoom() {
  MutexLock lock(mutex_);
  if (!fates_.open() || HasRoomLocked()) return {};
  return AwaitRoomLocked(/*idle=*/false);
}

AnswerRef Channel::WhenIdle() {
  MutexLock lock(mutex_);
  if (!fates_.open() || OutstandingLocked() == 0) return {};
  return AwaitRoomLocked(/*idle=*/true);
}

AnswerRef Channel::AwaitRoomLocked(bool idle) {
  AnswerRef slot(Answer::New(0));
  room_waiters_.push_back({AnswerRef::Another(slot.get()), idle});
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

void Channel::NotifyFinished(const AnswerList& finished, bool as_leader) {
  reactor_.NotifyAll(finished, as_leader);
}

void Channel::TellObserver(bool as_leader) {
  if (options_.observer == nullptr) return;
  std::vector<ObservedAnswer> answers;
  {
    MutexLock lock(mutex_);
    answers.swap(observed_);
  }
  if (!answers.empty()) options_.observer->Answered(id_, std::move(answers), as_leader);
}

void Channel::Flush() {
  AnswerList finished;
  {
    MutexLock lock(mutex_);
    reactor_knows_.stranded = false;
    if (!fates_.open()) return;
    FlushLocked();
    OpenRoomLocked();  // a call of the line may have ended without going
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
}

void Channel::FlushLocked() {
  if (!stream_.attached() || stream_.broken()) return;
  unflushed_frames_ = 0;
  const ChannelStream::Wrote wrote = stream_.Write(session_.window());
  if (wrote.any) OpenRoomLocked();
  ArmWritesLocked(wrote.blocked);
}

/// True if the leader is to flush this channel when its socket becomes writable.
void Channel::ArmWritesLocked(bool on) {
  if (std::exchange(reactor_knows_.writes, on) != on) reactor_.WatchWrites(*this, on);
}

bool Channel::Usable() {
  MutexLock lock(mutex_);
  return fates_.open();
}

std::size_t Channel::Outstanding() {
  MutexLock lock(mutex_);
  return OutstandingLocked();
}

}  // namespace troupe::actors
