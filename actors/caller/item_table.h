// Calls of a channel with several answers, and the streams that their items fill.
//
// An item's value may lie in another process's memory: then its frame comes first and the memory
// later. Who waits for an item is told when that is here. An observer hears of a call's end only
// when all its items can be read, since it may end the process that made them as soon as it hears.
//
// Takes no lock: its channel's mutex guards it. What it lets arrive later outlives it and the
// channel.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "actors/caller/call_observer.h"
#include "actors/core/call/call_frame.h"
#include "actors/objects/object_store.h"
#include "actors/slots/answer.h"
#include "actors/slots/item_stream.h"

namespace troupe::actors {

/// Why a connection ends over a value in memory, for people.
inline constexpr char kBadResult[] = "a result in memory that it does not name";

class ItemTable {
 public:
  /// `observer`: of the channel of that id; nullptr: it has none.
  ItemTable(std::uint64_t channel, std::shared_ptr<CallObserver> observer)
      : channel_(channel), observer_(std::move(observer)) {}

  /// No call gives several answers: nothing here need be asked.
  bool empty() const { return streams_.empty(); }
  /// Items of an observed call are on their way, or have been since it was made.
  bool arriving() const { return !arriving_.empty(); }

  /// The call of that number fills `items`; nullptr: it has one answer, and nothing is moved.
  void Add(std::uint64_t sequence, std::shared_ptr<ItemStream>&& items) {
    if (items != nullptr) streams_[sequence] = std::move(items);
  }
  /// Fills a slot with a value in memory; `wanted`: somebody may read it. `then` is run as the
  /// store says (ObjectStore::Then).
  using TakeObject = absl::FunctionRef<ObjectStore::Took(Answer* slot, std::string_view body,
                                                         bool wanted, ObjectStore::Then then)>;
  /// An item has come. `under_way`: its call has no answer yet. False: the frame is none that may
  /// come, and `*why` says it.
  bool Take(const Frame& frame, bool under_way, TakeObject take_object, AnswerList* finished,
            std::string* why);
  /// The call's last frame came, or nothing more will: its flags and bytes.
  void End(std::uint64_t sequence, std::uint16_t flags, std::string_view bytes,
           AnswerList* finished);
  /// The call is over for this channel; its stream is not, for its observer may make it again.
  void Forget(std::uint64_t sequence);
  /// The last frame of an observed call came. What to tell the observer now; nullopt: it is told
  /// when the items before it are here, and `slot` was taken for that.
  std::optional<ObservedAnswer::Lost> AfterItems(std::uint64_t sequence, AnswerRef& slot);

  /// Calls `look(sequence, stream)` for each call.
  template <class Look>
  void ForEach(Look look) const {
    for (const auto& [sequence, items] : streams_) look(sequence, *items);
  }

 private:
  struct Arriving;
  class ItemArrived;

  const std::uint64_t channel_;
  const std::shared_ptr<CallObserver> observer_;
  std::unordered_map<std::uint64_t, std::shared_ptr<ItemStream>> streams_;  // by sequence
  std::unordered_map<std::uint64_t, std::shared_ptr<Arriving>> arriving_;   // observed calls' items
};

}  // namespace troupe::actors
