// The arguments of one call that its caller, on another host, named as objects: on their way, then copies here.
//
// Thread-safe. Lives in a shared_ptr, because what is on its way may outlive who waits for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/bulk/bulk_session.h"
#include "actors/objects/object_handles.h"

namespace troupe::actors {

class RemoteArguments {
 public:
  /// `ready` is called once, on the mover's thread, when each has come or never will, and the caller knows that the
  /// references inside them, `refs`, are held here.
  static std::shared_ptr<RemoteArguments> Begin(BulkSession& bulk_session, const std::vector<store::ObjectId>& ids,
                                              const std::vector<store::ObjectId>& refs, std::function<void()> ready);
  bool ready() const;
  /// Once ready: the copy of the caller's object, which is here while this is; or why there is none.
  StatusOr<store::ObjectId> CopyOf(const store::ObjectId& id) const;

 private:
  RemoteArguments() = default;
  void Came(const store::ObjectId& id, StatusOr<store::ObjectId> copy);
  void CameRefs(Handles refs);
  void OneLess(std::unique_lock<std::mutex> lock);

  mutable std::mutex mutex_;
  std::size_t missing_ = 0;
  std::function<void()> ready_;
  std::map<store::ObjectId, StatusOr<store::ObjectId>> copies_;
  Handles handles_;
};

}  // namespace troupe::actors
