// Answers that are more than the bytes of one frame: several of one call, objects in memory.
#include <absl/strings/str_format.h>

#include <mutex>
#include <utility>

#include "actors/caller/channel.h"
#include "actors/objects/object_store.h"
#include "actors/caller/reactor.h"

namespace troupe::actors {
namespace {

constexpr char kBadResult[] = "a result in memory that it does not name";

/// A result can be lost after its frame came, with the process that made it.
bool LostOnTheWay(const Slot& slot) {
  return (slot.flags() & kFlagRuntimeError) != 0 && ReadRuntimeError(slot.bytes()).code == kResultLost;
}

}  // namespace

/// The call's last frame came, or nothing more will.
void Channel::EndItemsLocked(std::uint64_t sequence, std::uint16_t flags, std::string_view bytes) {
  const auto found = items_.find(sequence);
  if (found == items_.end()) return;
  found->second->End(flags, bytes, &finished_);
  items_.erase(found);
}

/// The value lies in the actor's memory. It becomes this process's also where nobody wants it any more.
bool Channel::TakeResult(Slot* slot, const Frame& frame, std::string* why) {
  const ObjectStore::Took took = frame.head.flags == (kFlagReply | kFlagObjects)
                                     ? TakeObject(slot, frame.body, /*wanted=*/!slot->Abandoned())
                                     : ObjectStore::Took::kBad;
  if (took == ObjectStore::Took::kDone && slot->Finish()) {
    finished_.push_back(slot);
    return true;
  }
  if (took == ObjectStore::Took::kBad) {
    *why = kBadResult;
    Answer(slot, ErrorCode::kInternal, options_.description + " sent " + *why);
  }
  slot->Release();
  return took != ObjectStore::Took::kBad;
}

/// The items of an observed call that are in memory: how many of them are on their way, whether one was lost there, and
/// who waits for the last one.
struct Channel::ItemsArriving {
  explicit ItemsArriving(std::shared_ptr<ItemStream> items) : stream(std::move(items)) {}

  const std::shared_ptr<ItemStream> stream;
  std::mutex mutex;
  std::size_t missing = 0;
  bool lost = false;
  std::unique_ptr<AnswerArrived> then;
};

/// Tells the observer of an answer once its memory, or that of the items before it, is here. On the background thread.
class Channel::AnswerArrived : public Completion {
 public:
  AnswerArrived(const Channel& channel, Slot* slot)
      : observer_(channel.options_.observer), channel_(channel.id_), slot_(slot) {}
  void Run() override { Tell(LostOnTheWay(*slot_)); }
  void Tell(bool lost) {
    using Lost = ObservedAnswer::Lost;
    observer_->Answered(channel_, {{slot_, lost ? Lost::kMaybeExecuted : Lost::kNo}}, /*as_leader=*/false);
  }

 private:
  const std::shared_ptr<CallObserver> observer_;
  const std::uint64_t channel_;
  Slot* const slot_;
};

/// One item: on its way while this lives. Where it is wanted, its slot is finished by this.
class Channel::ItemArrived : public Completion {
 public:
  ItemArrived(std::shared_ptr<ItemsArriving> items, Slot* slot) : items_(std::move(items)), slot_(slot) {
    if (slot_ != nullptr) slot_->AddReference();
    const std::lock_guard lock(items_->mutex);
    ++items_->missing;
  }
  ~ItemArrived() override {
    if (slot_ != nullptr) slot_->Release();
    std::unique_ptr<AnswerArrived> then;
    bool lost = false;
    {
      const std::lock_guard lock(items_->mutex);
      if (--items_->missing == 0) then = std::move(items_->then);
      lost = items_->lost;
    }
    if (then != nullptr) then->Tell(lost);
  }
  void Run() override {
    if (slot_ == nullptr) return;
    SlotList finished;
    if (LostOnTheWay(*slot_)) {
      items_->stream->Lost(slot_, &finished);
      const std::lock_guard lock(items_->mutex);
      items_->lost = true;
    } else {
      items_->stream->Arrived(slot_, &finished);
    }
    CallReactor::Current().NotifyAll(finished, /*as_leader=*/false);
  }

 private:
  const std::shared_ptr<ItemsArriving> items_;
  Slot* const slot_;  // one reference; nullptr: nobody wants the item
};

/// The observer hears of a call's end when all its items can be read: then it may end the process. False: they can.
bool Channel::FinishBehindItems(Slot* slot, const Frame& frame) {
  const auto found = items_arriving_.find(frame.head.sequence);
  if (found == items_arriving_.end()) return false;
  const std::shared_ptr<ItemsArriving> arriving = std::move(found->second);
  items_arriving_.erase(found);
  const std::lock_guard lock(arriving->mutex);
  if (arriving->missing > 0) {
    arriving->then = std::make_unique<AnswerArrived>(*this, slot);
  } else if (arriving->lost) {
    observed_.push_back({slot, ObservedAnswer::Lost::kMaybeExecuted});
  } else {
    return false;
  }
  items_.erase(frame.head.sequence);
  return true;
}

/// TakeResult for the observer, which hears of it when it can be read.
bool Channel::TakeObservedResult(Slot* slot, const Frame& frame, std::string* why) {
  ObjectStore::Took took = ObjectStore::Took::kBad;
  if (frame.head.flags == (kFlagReply | kFlagObjects)) {
    auto arrived = std::make_unique<AnswerArrived>(*this, slot);
    took = TakeObject(slot, frame.body, /*wanted=*/true, {std::move(arrived), /*fills_only=*/true});
  }
  items_.erase(frame.head.sequence);
  if (took == ObjectStore::Took::kLater) return true;
  if (took == ObjectStore::Took::kBad) {
    *why = kBadResult;
    ByteBuffer body;
    AppendRuntimeError(body, ErrorCode::kInternal, options_.description + " sent " + *why);
    slot->Fill(kFlagReply | kFlagRuntimeError, body.view());
  }
  FinishLocked(slot, frame.head.sequence, ObservedAnswer::Lost::kNo);
  return took != ObjectStore::Took::kBad;
}

bool Channel::TakeItem(const Frame& frame, std::string* why) {
  const auto found = items_.find(frame.head.sequence);
  if (found == items_.end() || !ring_.Holds(frame.head.sequence)) {
    *why = absl::StrFormat("an item for call %u, which expects none", frame.head.sequence);
    return false;
  }
  if ((frame.head.flags & kFlagObjects) == 0) {
    found->second->Put(frame.head.flags, frame.body, &finished_);
    return true;
  }
  const std::optional<std::uint64_t> bytes = ObjectStore::ResultBytes(frame.body);
  if (!bytes) {
    *why = kBadResult;
    return false;
  }
  std::shared_ptr<ItemsArriving> arriving;
  if (options_.observer != nullptr) {
    std::shared_ptr<ItemsArriving>& known = items_arriving_[frame.head.sequence];
    if (known == nullptr) known = std::make_shared<ItemsArriving>(found->second);
    arriving = known;
  }
  bool good = true;
  bool wanted = true;
  const auto fill = [&](Slot* slot) {
    ObjectStore::Then then;
    if (arriving != nullptr) {
      then = {std::make_unique<ItemArrived>(arriving, wanted ? slot : nullptr), /*fills_only=*/wanted};
    }
    const ObjectStore::Took took = TakeObject(slot, frame.body, wanted, std::move(then));
    if (took == ObjectStore::Took::kBad) good = false;
    return took == ObjectStore::Took::kDone;
  };
  if (!found->second->PutBy(*bytes, fill, &finished_)) {
    wanted = false;
    const SlotHold nobody(Slot::New(reactor_.NextLocalId()));  // its memory is given back
    fill(nobody.get());
  }
  if (!good) *why = kBadResult;
  return good;
}

}  // namespace troupe::actors
