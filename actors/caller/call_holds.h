// Objects that a call names, held until it has its answer: the process that runs it has registered
// them by then, or, on another host, has its copy.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "actors/bulk/bulk_session.h"
#include "actors/objects/object_handles.h"
#include "actors/objects/object_store.h"
#include "actors/slots/waiter.h"

namespace troupe::actors {

class CallHolds : public Completion {
 public:
  /// `bulk_session`: what large values go over to another host; nullptr: the call stays on this
  /// one.
  CallHolds(Handles held, std::shared_ptr<BulkSession> bulk_session)
      : held_(std::move(held)), bulk_session_(std::move(bulk_session)) {
    ObjectStore* const store = bulk_session_ != nullptr ? ObjectStore::Existing() : nullptr;
    if (store == nullptr) return;
    given_ = store->RemoteNamesOf(held_.ids());
    bulk_session_->Give(given_);
  }
  ~CallHolds() override {
    if (bulk_session_ != nullptr) bulk_session_->TakeBack(given_);
  }
  void Run() override {}

 private:
  const Handles held_;
  std::vector<store::ObjectId> given_;  // over it
  const std::shared_ptr<BulkSession> bulk_session_;
};

}  // namespace troupe::actors
