// What a call names, until it has its answer: whoever runs it has registered it by then, or, on another host, has
// its copy.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "actors/bulk/bulk_session.h"
#include "actors/objects/object_handles.h"
#include "actors/objects/object_store.h"
#include "actors/slots/waiter.h"

namespace troupe::actors {

class HeldForCall : public Completion {
 public:
  /// `crossing`: what large values go over to another host; nullptr: the call stays on this one.
  HeldForCall(Handles held, std::shared_ptr<Crossing> crossing)
      : held_(std::move(held)), crossing_(std::move(crossing)) {
    ObjectStore* const store = crossing_ != nullptr ? ObjectStore::Existing() : nullptr;
    if (store == nullptr) return;
    given_ = store->NamesAway(held_.ids());
    crossing_->Give(given_);
  }
  ~HeldForCall() override {
    if (crossing_ != nullptr) crossing_->TakeBack(given_);
  }
  void Run() override {}

 private:
  const Handles held_;
  std::vector<store::ObjectId> given_;  // over it
  const std::shared_ptr<Crossing> crossing_;
};

}  // namespace troupe::actors
