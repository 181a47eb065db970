// An answer to come: the slot that a Ref holds, and that a reply is written into without the GIL.
//
// Life: made by Answer::New with one reference; every holder (the ring of outstanding calls, the
// Ref, a resolver) has its own. Completed once, by whoever claims it first; the bytes never change
// after done() and may then be read by any thread. Small answers lie inside, larger ones in
// malloc'ed memory. Slots come from a free list per thread. View of one process; never blocks.
#pragma once

#include <absl/container/inlined_vector.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "actors/core/call/call_frame.h"
#include "runtime/base/ids.h"

namespace troupe::actors {

struct WaitNode;

class Answer {
 public:
  static constexpr std::size_t kInlineBytes = 48;

  /// `id` tells this answer from all others of this process.
  static Answer* New(std::uint64_t id);
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  void AddReference() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) Destroy();
  }
  /// Only the caller's own reference is left, and nobody waits: nobody will read the answer.
  bool Abandoned() const {
    return references_.load(std::memory_order_acquire) == 1 &&
           (state_.load(std::memory_order_acquire) & kWaited) == 0;
  }

  bool done() const { return (state_.load(std::memory_order_acquire) & kDone) != 0; }
  /// True for the first caller only: the one that may Fill and Finish.
  bool Claim() { return (state_.fetch_or(kClaimed, std::memory_order_relaxed) & kClaimed) == 0; }
  /// Keeps a copy of the answer; before Finish. `flags` are frame flags.
  void Fill(std::uint16_t flags, std::string_view bytes);
  /// Undoes Fill; before Finish.
  void Unfill();
  /// Publishes the answer. True: somebody waits and must be told (CallReactor::Notify).
  bool Finish() {
    const std::uint32_t before = state_.fetch_or(kDone, std::memory_order_acq_rel);
    return (before & kWaited) != 0 || ((before & kFailureWaited) != 0 && failed());
  }
  /// A wait node was hung on the slot. False: it is done, and nobody will be told.
  bool Watch() { return (state_.fetch_or(kWaited, std::memory_order_acq_rel) & kDone) == 0; }
  /// A wait node that only an error wakes (FailureWatch) was hung on the slot. False: it is done,
  /// and nobody will be told.
  bool WatchFailure() {
    return (state_.fetch_or(kFailureWaited, std::memory_order_acq_rel) & kDone) == 0;
  }

  /// For who found it without a reference, in a table that its end takes it out of. False: it is
  /// ending.
  bool TryAddReference() {
    std::uint32_t seen = references_.load(std::memory_order_relaxed);
    while (seen != 0 &&
           !references_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) {
    }
    return seen != 0;
  }
  /// The slot stands for that owner's object number id(), in the process of that generation
  /// (ForkGuard) alone, and `released` of SetReleaseHook is told of its end. Once; with the store's
  /// lock held, as for what it says.
  void StandForObject(const ProcessId& owner, std::uint32_t generation) {
    object_owner_ = owner;
    object_generation_ = generation;
    state_.fetch_or(kObject, std::memory_order_relaxed);
  }
  const ProcessId& object_owner() const { return object_owner_; }
  std::uint32_t object_generation() const { return object_generation_; }
  bool stands_for_object() const { return (state_.load(std::memory_order_relaxed) & kObject) != 0; }
  static void SetReleaseHook(void (*released)(const Answer*)) { release_hook_.store(released); }
  /// Leaves the answer to be made when somebody asks for it: `asked` of SetAskHook is told of the
  /// first.
  void AnswerWhenAsked() { state_.fetch_or(kAsleep, std::memory_order_relaxed); }
  static void SetAskHook(void (*asked)(const Answer*)) { ask_hook_.store(asked); }
  /// Asks for the answer: before it is waited for, with no lock held that a hook may take.
  void Ask() {
    if ((state_.load(std::memory_order_relaxed) & kAsleep) != 0) Rouse();
  }

  /// After done(), or after Fill by who filled it:
  std::uint16_t flags() const { return flags_; }
  bool failed() const { return (flags_ & kErrorFlags) != 0; }
  std::string_view bytes() const { return {size_ > kInlineBytes ? heap_ : inline_, size_}; }

  std::uint64_t id() const { return id_; }
  /// Channel and sequence of the call that is to answer it; of a slot that a channel made, its id.
  std::uint64_t call() const { return call_.load(std::memory_order_relaxed); }
  void set_call(std::uint64_t call) { call_.store(call, std::memory_order_relaxed); }

  /// Id of the call that made this call, within this process. 0: none did.
  std::uint64_t started_by() const { return started_by_.load(std::memory_order_relaxed); }
  void set_started_by(std::uint64_t call) { started_by_.store(call, std::memory_order_relaxed); }

  /// Data of the observer of the slot's channel; nullptr: it does not know the call.
  void* observed = nullptr;
  /// Bytes the channel had been given when this call's frame ended: what was handed to the socket
  /// tells whether the call was sent. Guarded by the channel's mutex.
  std::uint64_t end_offset = 0;
  /// Guarded by the reactor's mutex.
  WaitNode* waiters = nullptr;

 private:
  enum : std::uint32_t {
    kDone = 1,
    kWaited = 2,
    kClaimed = 4,
    kObject = 8,
    kAsleep = 16,
    kFailureWaited = 32
  };
  explicit Answer(std::uint64_t id) : id_(id), call_(id) {}
  void Destroy();
  void Rouse();

  static std::atomic<void (*)(const Answer*)> release_hook_;
  static std::atomic<void (*)(const Answer*)> ask_hook_;

  std::atomic<std::uint32_t> references_{1};
  std::atomic<std::uint32_t> state_{0};
  std::uint64_t id_;
  std::atomic<std::uint64_t> call_;
  std::atomic<std::uint64_t> started_by_{0};
  std::uint32_t size_ = 0;
  std::uint16_t flags_ = 0;
  union {
    char inline_[kInlineBytes];
    char* heap_;
  };
  ProcessId object_owner_;
  std::uint32_t object_generation_ = 0;
};

/// On and off Answer::waiters; with the reactor's mutex.
void LinkNode(Answer* slot, WaitNode& node);
void UnlinkNode(Answer* slot, const WaitNode& node);

/// Owns one reference to an answer, or none; given back when it ends. Who is given one by value
/// owns it.
class AnswerRef {
 public:
  AnswerRef() = default;
  /// Takes over a reference that is there.
  explicit AnswerRef(Answer* slot) : slot_(slot) {}
  /// Adds one to those that are there.
  static AnswerRef Another(Answer* slot) {
    slot->AddReference();
    return AnswerRef(slot);
  }
  AnswerRef(AnswerRef&& other) noexcept : slot_(other.slot_) { other.slot_ = nullptr; }
  AnswerRef& operator=(AnswerRef&& other) noexcept {
    AnswerRef moved(std::move(other));
    std::swap(slot_, moved.slot_);
    return *this;
  }
  ~AnswerRef() {
    if (slot_ != nullptr) slot_->Release();
  }
  explicit operator bool() const { return slot_ != nullptr; }
  Answer* get() const { return slot_; }
  Answer* operator->() const { return slot_; }
  Answer& operator*() const { return *slot_; }
  friend bool operator==(const AnswerRef& hold, std::nullptr_t) { return hold.slot_ == nullptr; }
  /// Gives the reference away: the caller owns it now.
  [[nodiscard]] Answer* Take() {
    Answer* slot = slot_;
    slot_ = nullptr;
    return slot;
  }

 private:
  Answer* slot_ = nullptr;
};

/// Usually one: what a blocked thread waits for.
using AnswerList = absl::InlinedVector<AnswerRef, 8>;

/// Publishes the answer. Where somebody waits, the slot goes to `waited` (for
/// CallReactor::NotifyAll) with the reference that was held; else that is given back.
inline void FinishInto(AnswerRef slot, AnswerList* waited) {
  if (slot->Finish()) waited->push_back(std::move(slot));
}
inline void FinishInto(Answer* slot, AnswerList* waited) { FinishInto(AnswerRef(slot), waited); }

}  // namespace troupe::actors
