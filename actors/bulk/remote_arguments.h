// The arguments of one call that its caller, on another host, named as objects: on their way, then
// copies here.
//
// Thread-safe. Lives in a shared_ptr, because what is on its way may outlive who waits for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "actors/bulk/bulk_session.h"
#include "actors/objects/object_handles.h"
#include "runtime/base/mutex.h"

namespace troupe::actors {

class RemoteArguments {
 public:
  /// `ready` is called once, on the mover's thread, when each has come or never will, and the
  /// caller knows that the references inside them, `refs`, are held here.
  static std::shared_ptr<RemoteArguments> Begin(BulkSession& bulk_session,
                                                const std::vector<store::ObjectId>& ids,
                                                const std::vector<store::ObjectId>& refs,
                                                std::function<void()> ready);
  bool ready() const;
  /// Once ready: the copy of the caller's object, which is here while this is; or why there is
  /// none.
  StatusOr<store::ObjectId> CopyOf(const store::ObjectId& id) const;

 private:
  /// `missing`: how often something is to come.
  RemoteArguments(std::size_t missing, std::function<void()> ready)
      : missing_(missing), ready_(std::move(ready)) {}
  void Came(const store::ObjectId& id, StatusOr<store::ObjectId> copy);
  void CameRefs(Handles refs);
  /// With the last one, what is to be called without the lock; else nothing.
  std::function<void()> OneLessLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::size_t missing_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<void()> ready_ ABSL_GUARDED_BY(mutex_);
  std::map<store::ObjectId, StatusOr<store::ObjectId>> copies_ ABSL_GUARDED_BY(mutex_);
  Handles handles_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::actors
