// Calls of one channel that cannot be sent yet: arguments of theirs are to come, or calls before
// them wait.
//
// A call is kept, encoded, with gaps where its missing arguments belong, and goes as soon as they
// are there and the channel has room: in the order the calls were made where the actor runs them in
// order, else each when it can. An argument that failed is its call's answer. A call ends without
// its arguments when the channel gets its verdict, or is ended, or when it is cancelled.
//
// Thread-safe; never blocks. Calls go on the reactor's background thread. Lock order: a line's
// mutex, then its channel's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "actors/caller/argument_codec.h"
#include "actors/caller/pending_arguments.h"
#include "actors/caller/pending_target.h"
#include "actors/objects/object_handles.h"
#include "actors/slots/answer.h"
#include "actors/slots/item_stream.h"
#include "actors/slots/room_waiters.h"
#include "runtime/base/mutex.h"

namespace troupe::actors {

class PendingCalls : public ArgumentKeeper, public std::enable_shared_from_this<PendingCalls> {
 public:
  static constexpr std::size_t kCallsMax = 256u << 10;
  static constexpr std::size_t kBytesMax = 128u << 20;

  struct Call {
    // kFrameHeadBytes of room, then the body without the arguments that are to come
    std::string frame;
    std::uint16_t flags = 0;
    Handles held;  // objects that the frame names
    PendingArguments to_come;  // into the frame
    std::shared_ptr<ItemStream> items;
    std::string method;  // for people
  };

  /// `values` outlives the line.
  PendingCalls(std::weak_ptr<PendingTarget> target, std::string description, bool ordered,
               const ArgumentCodec& values);
  ~PendingCalls() override;
  PendingCalls(const PendingCalls&) = delete;
  PendingCalls& operator=(const PendingCalls&) = delete;

  /// How many calls wait; of the thread that made them, exact.
  std::size_t size() const { return size_.load(std::memory_order_acquire); }
  /// How many of them the channel has not taken: each call without an answer is counted by its line
  /// or its channel, and never by both, so that who has the last answer finds none outstanding.
  std::size_t untaken() const { return untaken_.load(std::memory_order_acquire); }
  /// The channel takes one; called with the channel's mutex held.
  void Taken() { untaken_.fetch_sub(1, std::memory_order_release); }
  /// Returns true if a call made now waits behind others.
  bool Holds() const { return ordered_ && size() != 0; }
  /// Keeps a call until it can go. The answer it will have.
  AnswerRef Keep(Call call);
  /// An answer that is done when there is room for another call; empty: there is now.
  AnswerRef WhenRoom();
  /// Takes a call out of the line, and answers it as cancelled. False: it is not here.
  bool Cancel(const Answer* answer);
  /// Calls `look` with the answer of each that waits, with the line's lock held.
  void ForEach(const std::function<void(Answer*)>& look);
  /// The channel is no longer open: what waits has the channel's answer. Posted by the channel.
  void ChannelEnded() { Go(); }

 private:
  struct Kept {
    Call call;
    AnswerRef slot;
    std::size_t bytes;
  };
  using Calls = std::map<std::uint64_t, Kept>;
  class RoomOpen;

  void ArgumentHere(std::uint64_t number, const Answer& answer) override;
  void RoomCame();
  void Go();
  enum class Sent { kGone, kStays, kFull };
  Sent SendLocked(PendingTarget& target, Kept& kept, AnswerList* finished)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FillInLocked(PendingTarget::Place place, Kept& kept, AnswerList* finished)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerLocked(Kept& kept, std::uint16_t flags, std::string_view body, AnswerList* finished)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Calls::iterator EraseLocked(Calls::iterator at, AnswerList* finished)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::weak_ptr<PendingTarget> target_;
  const std::string description_;
  const bool ordered_;
  const ArgumentCodec& values_;
  std::atomic<std::size_t> size_{0};
  std::atomic<std::size_t> untaken_{0};

  Mutex mutex_;
  Calls calls_ ABSL_GUARDED_BY(mutex_);  // by number, in the order they were made
  std::uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool awaits_room_ ABSL_GUARDED_BY(mutex_) = false;  // the channel's
  RoomWaiters room_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::actors
