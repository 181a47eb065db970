// The answers of one call that gives several: a fixed number of values, or what a generator gives
// as it gives it. The caller's half; who makes them is paced by item_window.h.
//
//   IS-1  The n-th item fills the n-th slot, in the order of arrival, each once.
//   IS-2  After End no slot is pending: of a fixed number those without an item hold the error; a
//         stream has the error as its last item, if there is one, and then a slot with kFlagEnd,
//         for good.
//   IS-3  A call that is made again gives what it gave before once more, and that is left out.
//   IS-4  A stream's front slot is there before its item is, so that it can be waited for.
//   IS-5  An item that was lost on its way is pending: filled by the same item of the call that is
//         made again, and with what lost it if that does not come before End.
//
// The channel puts and ends, under its mutex; any thread takes. Never blocks. Slots that are done
// and waited for are handed back, to be told of (CallReactor::Notify) once no lock is held.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>

#include "actors/core/call/call_frame.h"
#include "actors/slots/answer.h"
#include "runtime/base/mutex.h"

namespace troupe::actors {

class ItemStream {
 public:
  using NextId = std::function<std::uint64_t()>;
  static constexpr std::uint32_t kOpen = 0;

  /// `count` values, or kOpen.
  ItemStream(std::uint32_t count, NextId next_id);
  ItemStream(const ItemStream&) = delete;
  ItemStream& operator=(const ItemStream&) = delete;

  /// The next item came: fills its slot with a copy of it.
  void Put(std::uint16_t flags, std::string_view bytes, AnswerList* finished);
  /// The next item came: `fill` fills its slot, and it takes `bytes` wherever they lie. Where
  /// `fill` returns false the slot is answered later. False: nobody wants the item; `fill` was not
  /// called.
  bool PutBy(std::uint64_t bytes, absl::FunctionRef<bool(Answer*)> fill, AnswerList* finished);
  /// An item whose `fill` returned false is here: its slot is filled.
  void Arrived(Answer* slot, AnswerList* finished);
  /// An item whose `fill` returned false will never be here: its slot is filled with why.
  void Lost(Answer* slot, AnswerList* finished);
  /// The call is made again, from its beginning; not after End.
  void Again();
  /// How many values were asked for; kOpen.
  std::uint32_t count() const { return count_; }
  /// `flags` and `bytes` of the call's last frame, which are an error's or mean nothing.
  void End(std::uint16_t flags, std::string_view bytes, AnswerList* finished);

  /// The slot of value `i` of a fixed number.
  AnswerRef At(std::size_t i);
  /// The slot of a stream's next item, done or not.
  AnswerRef Front();
  /// The front's item was taken. False: it is not there yet, or the end is.
  bool Pop();

  struct Taken {
    std::uint64_t items = 0;
    std::uint64_t bytes = 0;
  };
  /// The number popped in all.
  Taken taken() const;

 private:
  struct Item {
    AnswerRef slot;
    std::uint64_t bytes = 0;
    bool lost = false;
  };
  Item New() { return {AnswerRef(Answer::New(next_id_()))}; }
  /// The item that the call has just given once more, if it was lost; nullptr.
  Item* LostLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndLostLocked(AnswerList* finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillLocked(Answer* slot, std::uint16_t flags, std::string_view bytes, AnswerList* finished)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::uint32_t count_;
  const NextId next_id_;
  mutable Mutex mutex_;
  /// A stream's last one is pending, or the end.
  std::deque<Item> slots_ ABSL_GUARDED_BY(mutex_);
  std::size_t filled_ ABSL_GUARDED_BY(mutex_) = 0;  // a fixed number's
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::size_t given_ ABSL_GUARDED_BY(mutex_) = 0;      // by this making of the call
  std::size_t given_max_ ABSL_GUARDED_BY(mutex_) = 0;  // by those before it
  Taken taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::actors
