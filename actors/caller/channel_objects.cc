// A channel's part in large values: whether they lie in the actor's memory, or come from another
// host.
#include "actors/bulk/bulk_session.h"
#include "actors/bulk/remote_results.h"
#include "actors/caller/channel.h"
#include "actors/objects/object_store.h"

namespace troupe::actors {

std::shared_ptr<BulkSession> Channel::Bulk() {
  MutexLock lock(mutex_);
  BulkSessionLocked();
  return bulk_session_;
}

BulkSession* Channel::BulkSessionLocked() {
  if (route_.here() || !fates_.open()) return bulk_session_.get();
  if (bulk_session_ == nullptr) {
    bulk_session_ = BulkSession::Caller(options_.grace);
    BeginBulkSessionLocked();
  }
  return bulk_session_.get();
}

/// The session is known to both ends: its link may be made.
void Channel::BeginBulkSessionLocked() {
  if (bulk_session_ == nullptr || route_.here() || session_.established().IsNil()) return;
  bulk_session_->Begun(session_.established(), route_.target(), route_.identity());
}

/// A result that is not in its frame comes for this slot. `wanted`: somebody may read it. `then`:
/// see ObjectStore.
ObjectStore::Took Channel::TakeObjectLocked(Answer* slot, std::string_view body, bool wanted,
                                            ObjectStore::Then then) {
  ObjectStore* const objects = ObjectStore::Existing();
  if (objects == nullptr) return ObjectStore::Took::kBad;
  if (route_.here()) return objects->TakeResult(slot, body, std::move(then));
  BulkSessionLocked();  // from another host memory of this one cannot be named
  return TakeRemoteResult(*objects, slot, body, bulk_session_, wanted, std::move(then));
}

}  // namespace troupe::actors
