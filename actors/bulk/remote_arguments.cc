#include "actors/bulk/remote_arguments.h"

#include <set>
#include <utility>

namespace troupe::actors {

std::shared_ptr<RemoteArguments> RemoteArguments::Begin(BulkSession& bulk_session,
                                                        const std::vector<store::ObjectId>& ids,
                                                        const std::vector<store::ObjectId>& refs,
                                                        std::function<void()> ready) {
  const std::set<store::ObjectId> each(ids.begin(), ids.end());
  const std::size_t missing = each.size() + (refs.empty() ? 0 : 1);
  std::shared_ptr<RemoteArguments> made(new RemoteArguments(missing, std::move(ready)));
  for (const store::ObjectId& id : each) {
    bulk_session.Copy(
        id, [made, id](StatusOr<store::ObjectId> copy) { made->Came(id, std::move(copy)); });
  }
  if (refs.empty()) return made;
  const std::set<store::ObjectId> names(refs.begin(), refs.end());
  bulk_session.TakeRefs(
      {names.begin(), names.end()},
      [made](const std::shared_ptr<Handles>& handles) { made->CameRefs(std::move(*handles)); });
  return made;
}

void RemoteArguments::Came(const store::ObjectId& id, StatusOr<store::ObjectId> copy) {
  MutexLock lock(mutex_);
  if (copy.ok()) handles_.Add(*copy);
  copies_.emplace(id, std::move(copy));
  const std::function<void()> ready = OneLessLocked();
  lock.Unlock();
  if (ready) ready();
}

void RemoteArguments::CameRefs(Handles refs) {
  MutexLock lock(mutex_);
  handles_.Add(std::move(refs));
  const std::function<void()> ready = OneLessLocked();
  lock.Unlock();
  if (ready) ready();
}

std::function<void()> RemoteArguments::OneLessLocked() {
  return --missing_ == 0 ? std::exchange(ready_, nullptr) : nullptr;
}

bool RemoteArguments::ready() const {
  const MutexLock lock(mutex_);
  return missing_ == 0;
}

StatusOr<store::ObjectId> RemoteArguments::CopyOf(const store::ObjectId& id) const {
  const MutexLock lock(mutex_);
  const auto found = copies_.find(id);
  if (found == copies_.end()) return MakeError(ErrorCode::kInternal, "it was not asked for");
  return found->second;
}

}  // namespace troupe::actors
