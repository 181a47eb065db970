// Waits of this process for objects: which slot each object has here, which slots have no answer
// yet, which replies wait for the memory that they lie in, and what is run when an object is
// forgotten.
//
// Slots that others own are known here without keeping them: a slot says when it ends (Ended), and
// one that is just ending is not found any more. What is taken out is owned by who takes it.
//
// Whose view: one process. Takes no lock: the object store holds its mutex whenever it calls. A
// slot that ends asks for that mutex; so what is taken out here is destroyed without it.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "actors/objects/result_hold.h"
#include "actors/objects/segment_map.h"
#include "actors/slots/answer.h"
#include "actors/slots/waiter.h"
#include "runtime/base/ids.h"
#include "runtime/store/core/message.h"
#include "runtime/store/core/object_id.h"

namespace troupe::actors {

/// A reply that has come, and whose value lies in memory that is being fetched.
struct ArrivingResult {
  AnswerRef slot;
  store::Location location;
  std::vector<store::Handed> contained;
  ResultThen then;
};

class ObjectWaits {
 public:
  /// The slot that stands for `id` here, from now on; not kept.
  void Live(const store::ObjectId& id, Answer* slot) { slot_of_.insert_or_assign(id, slot); }
  /// Empty: it has none, or one that is ending.
  AnswerRef SlotOf(const store::ObjectId& id) const;
  /// A slot that stands for `id` is ending.
  void Ended(const store::ObjectId& id, const Answer* slot);

  /// `slot` gets an answer when `id` has a value that can be read; not kept.
  void AwaitValue(const store::ObjectId& id, Answer* slot) { borrowing_.emplace(id, slot); }
  bool ValueAwaited(const store::ObjectId& id) const { return borrowing_.count(id) != 0; }
  /// All of these that live, which wait no more.
  std::vector<AnswerRef> TakeAwaiting(const store::ObjectId& id);
  /// The value of `id` lies in a segment that is being fetched.
  void AwaitMemory(const SegmentKey& key, const store::ObjectId& id) {
    borrowing_of_.emplace(key, id);
  }
  std::vector<store::ObjectId> TakeAwaitingMemory(const SegmentKey& key);

  /// A reply waits for a segment.
  void Arrive(const SegmentKey& key, ArrivingResult result) {
    arriving_.emplace(key, std::move(result));
  }
  std::vector<ArrivingResult> TakeArrived(const SegmentKey& key);
  /// `then` is due when no reply waits for memory of some maker that one waits for. False: none
  /// does, and it is left alone.
  bool AfterArrivals(std::unique_ptr<Completion>* then);
  /// Returns the completions due for `maker`; none while a reply waits for its memory.
  std::vector<std::unique_ptr<Completion>> TakeAfterArrivals(const ProcessId& maker);

  /// `then` is due when `id`, an object of this process, is forgotten. One that waits for that
  /// already is enough: `then` is left alone.
  void WhenForgotten(const store::ObjectId& id, std::unique_ptr<Completion>* then);
  /// Returns the due completion; nullptr: none.
  std::unique_ptr<Completion> TakeForgotten(const store::ObjectId& id);

 private:
  boost::unordered_flat_map<store::ObjectId, Answer*, store::ObjectIdHash> slot_of_;
  std::multimap<store::ObjectId, Answer*> borrowing_;
  std::multimap<SegmentKey, store::ObjectId> borrowing_of_;
  std::multimap<SegmentKey, ArrivingResult> arriving_;
  std::multimap<ProcessId, std::unique_ptr<Completion>> after_arrivals_;  // by maker
  std::map<store::ObjectId, std::unique_ptr<Completion>> when_forgotten_;
};

}  // namespace troupe::actors
