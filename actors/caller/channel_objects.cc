// A channel's part in large values: whether they lie in the actor's memory, or come from another host.
#include "actors/caller/channel.h"
#include "actors/bulk/bulk_session.h"
#include "actors/objects/object_store.h"

namespace troupe::actors {

std::shared_ptr<Crossing> Channel::Cross() {
  const std::lock_guard lock(mutex_);
  CrossLocked();
  return crossing_;
}

Crossing* Channel::CrossLocked() {
  if (way_.here() || state_ != State::kOpen) return crossing_.get();
  if (crossing_ == nullptr) {
    crossing_ = Crossing::Caller(options_.grace);
    BeginCrossingLocked();
  }
  return crossing_.get();
}

/// The session is known to both ends: its link may be made.
void Channel::BeginCrossingLocked() {
  if (crossing_ == nullptr || way_.here() || session_.established().IsNil()) return;
  crossing_->Begun(session_.established(), way_.target, way_.identity);
}

/// A result that is not in its frame comes for this slot. `wanted`: somebody may read it. `then`: see ObjectStore.
ObjectStore::Took Channel::TakeObject(Slot* slot, std::string_view body, bool wanted, ObjectStore::Then then) {
  ObjectStore* const objects = ObjectStore::Existing();
  if (objects == nullptr) return ObjectStore::Took::kBad;
  if (way_.here()) return objects->TakeResult(slot, body, std::move(then));
  CrossLocked();  // from another host memory of this one cannot be named
  return objects->TakeResultAway(slot, body, crossing_, wanted, std::move(then));
}

}  // namespace troupe::actors
