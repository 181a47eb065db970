#include "actors/bulk/remote_arguments.h"

#include <set>
#include <utility>

namespace troupe::actors {

std::shared_ptr<RemoteArguments> RemoteArguments::Begin(BulkSession& bulk_session, const std::vector<store::ObjectId>& ids,
                                                    const std::vector<store::ObjectId>& refs,
                                                    std::function<void()> ready) {
  const std::set<store::ObjectId> each(ids.begin(), ids.end());
  std::shared_ptr<RemoteArguments> made(new RemoteArguments);
  made->missing_ = each.size() + (refs.empty() ? 0 : 1);
  made->ready_ = std::move(ready);
  for (const store::ObjectId& id : each) {
    bulk_session.Copy(id, [made, id](StatusOr<store::ObjectId> copy) { made->Came(id, std::move(copy)); });
  }
  if (refs.empty()) return made;
  const std::set<store::ObjectId> names(refs.begin(), refs.end());
  bulk_session.TakeRefs({names.begin(), names.end()},
                    [made](const std::shared_ptr<Handles>& handles) { made->CameRefs(std::move(*handles)); });
  return made;
}

void RemoteArguments::Came(const store::ObjectId& id, StatusOr<store::ObjectId> copy) {
  std::unique_lock lock(mutex_);
  if (copy.ok()) handles_.Add(*copy);
  copies_.emplace(id, std::move(copy));
  OneLess(std::move(lock));
}

void RemoteArguments::CameRefs(Handles refs) {
  std::unique_lock lock(mutex_);
  handles_.Add(std::move(refs));
  OneLess(std::move(lock));
}

void RemoteArguments::OneLess(std::unique_lock<std::mutex> lock) {
  std::function<void()> ready;
  if (--missing_ == 0) ready = std::exchange(ready_, nullptr);
  lock.unlock();
  if (ready) ready();
}

bool RemoteArguments::ready() const {
  const std::lock_guard lock(mutex_);
  return missing_ == 0;
}

StatusOr<store::ObjectId> RemoteArguments::CopyOf(const store::ObjectId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = copies_.find(id);
  if (found == copies_.end()) return MakeError(ErrorCode::kInternal, "it was not asked for");
  return found->second;
}

}  // namespace troupe::actors
