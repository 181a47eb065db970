#include "actors/slots/item_stream.h"

#include <algorithm>
#include <utility>

#include "actors/core/call/byte_buffer.h"

namespace troupe::actors {
namespace {

/// The stream keeps its reference.
void FinishSlot(Answer* slot, AnswerList* finished) {
  FinishInto(AnswerRef::Another(slot), finished);
}

}  // namespace

ItemStream::ItemStream(std::uint32_t count, NextId next_id)
    : count_(count), next_id_(std::move(next_id)) {
  for (std::uint32_t i = 0; i < (count_ == kOpen ? 1 : count_); ++i) slots_.push_back(New());
}

void ItemStream::FillLocked(Answer* slot, std::uint16_t flags, std::string_view bytes,
                            AnswerList* finished) {
  slot->Fill(flags, bytes);
  FinishSlot(slot, finished);
}

void ItemStream::Put(std::uint16_t flags, std::string_view bytes, AnswerList* finished) {
  PutBy(
      bytes.size(),
      [&](Answer* slot) {
        slot->Fill(flags, bytes);
        return true;
      },
      finished);
}

bool ItemStream::PutBy(std::uint64_t bytes, absl::FunctionRef<bool(Answer*)> fill,
                       AnswerList* finished) {
  const MutexLock lock(mutex_);
  if (ended_) return false;
  if (++given_ <= given_max_) {
    Item* const lost = LostLocked();
    if (lost == nullptr) return false;
    lost->lost = false;
    lost->slot->Unfill();
    if (fill(lost->slot.get())) FinishSlot(lost->slot.get(), finished);
    return true;
  }
  if (count_ != kOpen && filled_ >= count_) return false;
  // before it is done: who takes it finds what follows
  if (count_ == kOpen) slots_.push_back(New());
  Item& item = count_ == kOpen ? slots_[slots_.size() - 2] : slots_[filled_++];
  item.bytes = bytes;
  if (fill(item.slot.get())) FinishSlot(item.slot.get(), finished);
  return true;
}

ItemStream::Item* ItemStream::LostLocked() {
  const std::size_t popped = count_ == kOpen ? taken_.items : 0;
  if (given_ <= popped || given_ - popped > slots_.size()) return nullptr;
  Item& item = slots_[given_ - popped - 1];
  return item.lost ? &item : nullptr;
}

void ItemStream::Arrived(Answer* slot, AnswerList* finished) {
  const MutexLock lock(mutex_);
  FinishSlot(slot, finished);
}

void ItemStream::Lost(Answer* slot, AnswerList* finished) {
  const MutexLock lock(mutex_);
  if (ended_) return FinishSlot(slot, finished);
  for (Item& item : slots_) {
    if (item.slot.get() == slot) item.lost = true;
  }
}

void ItemStream::Again() {
  const MutexLock lock(mutex_);
  given_max_ = std::max(given_max_, given_);
  given_ = 0;
}

void ItemStream::End(std::uint16_t flags, std::string_view bytes, AnswerList* finished) {
  const bool failed = (flags & (kFlagTaskError | kFlagRuntimeError)) != 0;
  if (count_ == kOpen) {
    if (failed) Put(flags, bytes, finished);
    const MutexLock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    EndLostLocked(finished);
    return FillLocked(slots_.back().slot.get(), kFlagReply | kFlagEnd, {}, finished);
  }
  const MutexLock lock(mutex_);
  if (std::exchange(ended_, true)) return;
  EndLostLocked(finished);
  ByteBuffer missing;
  if (!failed) {
    AppendRuntimeError(missing, ErrorCode::kInternal,
                       "the actor ended the call without this value");
    flags = kFlagReply | kFlagRuntimeError;
    bytes = missing.view();
  }
  while (filled_ < count_) FillLocked(slots_[filled_++].slot.get(), flags, bytes, finished);
}

void ItemStream::EndLostLocked(AnswerList* finished) {
  for (Item& item : slots_) {
    if (std::exchange(item.lost, false)) FinishSlot(item.slot.get(), finished);
  }
}

AnswerRef ItemStream::At(std::size_t i) {
  const MutexLock lock(mutex_);
  return AnswerRef::Another(slots_[i].slot.get());
}

AnswerRef ItemStream::Front() { return At(0); }

bool ItemStream::Pop() {
  const MutexLock lock(mutex_);
  const Answer* const front = slots_.front().slot.get();
  if (!front->done() || (front->flags() & kFlagEnd) != 0) return false;
  ++taken_.items;
  taken_.bytes += slots_.front().bytes;
  slots_.pop_front();
  return true;
}

ItemStream::Taken ItemStream::taken() const {
  const MutexLock lock(mutex_);
  return taken_;
}

}  // namespace troupe::actors
