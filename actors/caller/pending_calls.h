// Calls of one channel that cannot be sent yet: arguments of theirs are to come, or calls before them wait.
//
// A call is kept, encoded, with gaps where its missing arguments belong, and goes as soon as they are there and the
// channel has room: in the order the calls were made where the actor runs them in order, else each when it can. An
// argument that failed is its call's answer. A call ends without its arguments when the channel gets its verdict, or
// is ended, or when it is cancelled.
//
// Thread-safe; never blocks. Calls go on the reactor's background thread. Lock order: a line's mutex, then its
// channel's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "actors/caller/pending_target.h"
#include "actors/slots/item_stream.h"
#include "actors/objects/object_handles.h"
#include "actors/slots/answer.h"
#include "actors/caller/argument_codec.h"

namespace troupe::actors {

template <class Keeper>
class ArgumentDone;

class PendingCalls : public std::enable_shared_from_this<PendingCalls> {
 public:
  static constexpr std::size_t kCallsMax = 256u << 10;
  static constexpr std::size_t kBytesMax = 128u << 20;

  struct Call {
    std::string frame;  // kFrameHeadBytes of room, then the body without the arguments that are to come
    std::uint16_t flags = 0;
    Handles held;                         // what the frame names
    std::vector<ArgumentToCome> to_come;  // where in the frame; in their order
    std::shared_ptr<ItemStream> items;
    std::string method;  // for people
  };

  /// `values` outlives the line.
  PendingCalls(std::weak_ptr<PendingTarget> target, std::string description, bool ordered, const ArgumentCodec& values);
  ~PendingCalls();
  PendingCalls(const PendingCalls&) = delete;
  PendingCalls& operator=(const PendingCalls&) = delete;

  /// How many calls wait; of the thread that made them, exact.
  std::size_t size() const { return size_.load(std::memory_order_acquire); }
  /// How many of them the channel has not taken: each call without an answer is counted by its line or its channel, and
  /// never by both, so that who has the last answer finds none outstanding.
  std::size_t untaken() const { return untaken_.load(std::memory_order_acquire); }
  /// The channel takes one; called with the channel's mutex held.
  void Taken() { untaken_.fetch_sub(1, std::memory_order_release); }
  /// Whether a call made now waits behind others.
  bool Holds() const { return ordered_ && size() != 0; }
  /// Keeps a call until it can go. Its answer, with one reference for the caller.
  Slot* Keep(Call call);
  /// A slot that is done when there is room for another call; nullptr: there is now. One reference for the caller.
  Slot* WhenRoom();
  /// Takes a call out of the line, and answers it as cancelled. False: it is not here.
  bool Cancel(const Slot* answer);
  /// Calls `look` with the answer of each that waits, with the line's lock held.
  void ForEach(const std::function<void(Slot*)>& look);
  /// The channel is no longer open: what waits has the channel's answer. Posted by the channel.
  void ChannelEnded() { Go(); }

 private:
  struct Kept {
    Call call;
    Slot* slot;           // one reference
    std::size_t missing;  // arguments
    std::size_t bytes;
  };
  using Calls = std::map<std::uint64_t, Kept>;
  friend class ArgumentDone<PendingCalls>;
  class RoomOpen;

  void ArgumentHere(std::uint64_t number, const Slot& answer);
  void Go();
  enum class Sent { kGone, kStays, kFull };
  Sent SendLocked(PendingTarget& target, Kept& kept, SlotList* finished);
  bool FillInLocked(PendingTarget::Place place, Kept& kept, SlotList* finished);
  void AnswerLocked(Kept& kept, std::uint16_t flags, std::string_view body, SlotList* finished);
  Calls::iterator EraseLocked(Calls::iterator at, SlotList* finished);

  const std::weak_ptr<PendingTarget> target_;
  const std::string description_;
  const bool ordered_;
  const ArgumentCodec& values_;
  std::atomic<std::size_t> size_{0};
  std::atomic<std::size_t> untaken_{0};

  std::mutex mutex_;
  Calls calls_;  // by number, in the order they were made
  std::uint64_t next_ = 1;
  std::size_t bytes_ = 0;
  bool awaits_room_ = false;  // of the channel
  std::vector<Slot*> room_waiters_;
};

}  // namespace troupe::actors
