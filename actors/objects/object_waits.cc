#include "actors/objects/object_waits.h"

namespace troupe::actors {

AnswerRef ObjectWaits::SlotOf(const store::ObjectId& id) const {
  const auto here = slot_of_.find(id);
  const bool lives = here != slot_of_.end() && here->second->TryAddReference();
  return lives ? AnswerRef(here->second) : AnswerRef();
}

void ObjectWaits::Ended(const store::ObjectId& id, const Answer* slot) {
  const auto here = slot_of_.find(id);
  if (here != slot_of_.end() && here->second == slot) slot_of_.erase(here);
  const auto [first, last] = borrowing_.equal_range(id);
  for (auto each = first; each != last; ++each) {
    if (each->second != slot) continue;
    borrowing_.erase(each);
    return;
  }
}

std::vector<AnswerRef> ObjectWaits::TakeAwaiting(const store::ObjectId& id) {
  std::vector<AnswerRef> slots;
  const auto [first, last] = borrowing_.equal_range(id);
  for (auto each = first; each != last; ++each) {
    if (each->second->TryAddReference()) slots.emplace_back(each->second);
  }
  borrowing_.erase(first, last);
  return slots;
}

std::vector<store::ObjectId> ObjectWaits::TakeAwaitingMemory(const SegmentKey& key) {
  std::vector<store::ObjectId> ids;
  const auto [first, last] = borrowing_of_.equal_range(key);
  for (auto each = first; each != last; ++each) ids.push_back(each->second);
  borrowing_of_.erase(first, last);
  return ids;
}

std::vector<ArrivingResult> ObjectWaits::TakeArrived(const SegmentKey& key) {
  std::vector<ArrivingResult> results;
  const auto [first, last] = arriving_.equal_range(key);
  for (auto each = first; each != last; ++each) results.push_back(std::move(each->second));
  arriving_.erase(first, last);
  return results;
}

bool ObjectWaits::AfterArrivals(std::unique_ptr<Completion>* then) {
  if (arriving_.empty()) return false;
  after_arrivals_.emplace(arriving_.begin()->first.first, std::move(*then));
  return true;
}

std::vector<std::unique_ptr<Completion>> ObjectWaits::TakeAfterArrivals(const ProcessId& maker) {
  std::vector<std::unique_ptr<Completion>> due;
  const auto waiting = arriving_.lower_bound({maker, 0});
  if (waiting != arriving_.end() && waiting->first.first == maker) return due;
  const auto [first, last] = after_arrivals_.equal_range(maker);
  for (auto each = first; each != last; ++each) due.push_back(std::move(each->second));
  after_arrivals_.erase(first, last);
  return due;
}

void ObjectWaits::WhenForgotten(const store::ObjectId& id, std::unique_ptr<Completion>* then) {
  std::unique_ptr<Completion>& waits = when_forgotten_[id];
  if (waits == nullptr) waits = std::move(*then);
}

std::unique_ptr<Completion> ObjectWaits::TakeForgotten(const store::ObjectId& id) {
  const auto waits = when_forgotten_.find(id);
  if (waits == when_forgotten_.end()) return nullptr;
  std::unique_ptr<Completion> then = std::move(waits->second);
  when_forgotten_.erase(waits);
  return then;
}

}  // namespace troupe::actors
