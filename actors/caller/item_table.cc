#include "actors/caller/item_table.h"

#include <absl/strings/str_format.h>

#include <cstddef>

#include "actors/caller/answer_arrived.h"
#include "actors/caller/reactor.h"
#include "runtime/base/mutex.h"

namespace troupe::actors {

/// The items of an observed call that are in memory: how many are on their way, whether one was
/// lost there, and who waits for the last one. Shared with what brings them, on other threads.
struct ItemTable::Arriving {
  explicit Arriving(std::shared_ptr<ItemStream> items) : stream(std::move(items)) {}

  const std::shared_ptr<ItemStream> stream;
  Mutex mutex;
  std::size_t missing ABSL_GUARDED_BY(mutex) = 0;
  bool lost ABSL_GUARDED_BY(mutex) = false;
  std::unique_ptr<AnswerArrived> then ABSL_GUARDED_BY(mutex);
};

/// An item on its way while this object lives. If the item is wanted, this finishes its slot.
class ItemTable::ItemArrived : public Completion {
 public:
  /// No `slot`: nobody wants the item.
  ItemArrived(std::shared_ptr<Arriving> items, AnswerRef slot)
      : items_(std::move(items)), slot_(std::move(slot)) {
    MutexLock lock(items_->mutex);
    ++items_->missing;
  }
  ~ItemArrived() override {
    slot_ = AnswerRef();
    std::unique_ptr<AnswerArrived> then;
    bool lost = false;
    {
      MutexLock lock(items_->mutex);
      if (--items_->missing == 0) then = std::move(items_->then);
      lost = items_->lost;
    }
    if (then != nullptr) then->Tell(lost);
  }
  void Run() override {
    if (slot_ == nullptr) return;
    AnswerList finished;
    if (LostOnTheWay(*slot_)) {
      items_->stream->Lost(slot_.get(), &finished);
      MutexLock lock(items_->mutex);
      items_->lost = true;
    } else {
      items_->stream->Arrived(slot_.get(), &finished);
    }
    CallReactor::Current().NotifyAll(finished, /*as_leader=*/false);
  }

 private:
  const std::shared_ptr<Arriving> items_;
  AnswerRef slot_;
};

void ItemTable::End(std::uint64_t sequence, std::uint16_t flags, std::string_view bytes,
                    AnswerList* finished) {
  const auto found = streams_.find(sequence);
  if (found == streams_.end()) return;
  found->second->End(flags, bytes, finished);
  streams_.erase(found);
}

void ItemTable::Forget(std::uint64_t sequence) {
  streams_.erase(sequence);
  arriving_.erase(sequence);
}

std::optional<ObservedAnswer::Lost> ItemTable::AfterItems(std::uint64_t sequence, AnswerRef& slot) {
  const auto found = arriving_.find(sequence);
  if (found == arriving_.end()) return ObservedAnswer::Lost::kNo;
  const std::shared_ptr<Arriving> arriving = std::move(found->second);
  Forget(sequence);
  MutexLock lock(arriving->mutex);
  if (arriving->missing == 0) {
    return arriving->lost ? ObservedAnswer::Lost::kMaybeExecuted : ObservedAnswer::Lost::kNo;
  }
  arriving->then = std::make_unique<AnswerArrived>(observer_, channel_, std::move(slot));
  return std::nullopt;
}

bool ItemTable::Take(const Frame& frame, bool under_way, TakeObject take_object,
                     AnswerList* finished, std::string* why) {
  const auto found = streams_.find(frame.head.sequence);
  if (found == streams_.end() || !under_way) {
    *why = absl::StrFormat("an item for call %u, which expects none", frame.head.sequence);
    return false;
  }
  if ((frame.head.flags & kFlagObjects) == 0) {
    found->second->Put(frame.head.flags, frame.body, finished);
    return true;
  }
  const std::optional<std::uint64_t> bytes = ObjectStore::ResultBytes(frame.body);
  if (!bytes) {
    *why = kBadResult;
    return false;
  }
  std::shared_ptr<Arriving> arriving;
  if (observer_ != nullptr) {
    std::shared_ptr<Arriving>& known = arriving_[frame.head.sequence];
    if (known == nullptr) known = std::make_shared<Arriving>(found->second);
    arriving = known;
  }
  bool good = true;
  bool wanted = true;
  const auto fill = [&](Answer* slot) {
    ObjectStore::Then then;
    if (arriving != nullptr) {
      AnswerRef told = wanted ? AnswerRef::Another(slot) : AnswerRef();
      auto arrived = std::make_unique<ItemArrived>(arriving, std::move(told));
      then = {std::move(arrived), /*fills_only=*/wanted};
    }
    const ObjectStore::Took took = take_object(slot, frame.body, wanted, std::move(then));
    if (took == ObjectStore::Took::kBad) good = false;
    return took == ObjectStore::Took::kDone;
  };
  if (!found->second->PutBy(*bytes, fill, finished)) {
    wanted = false;
    const AnswerRef nobody(Answer::New(Completions::Current().NextLocalId()));
    fill(nobody.get());  // the item's memory is given back
  }
  if (!good) *why = kBadResult;
  return good;
}

}  // namespace troupe::actors
