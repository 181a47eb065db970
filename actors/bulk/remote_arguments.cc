#include "actors/bulk/remote_arguments.h"

#include <set>
#include <utility>

namespace troupe::actors {

std::shared_ptr<AwayArguments> AwayArguments::Begin(Crossing& crossing, const std::vector<store::ObjectId>& ids,
                                                    const std::vector<store::ObjectId>& refs,
                                                    std::function<void()> ready) {
  const std::set<store::ObjectId> each(ids.begin(), ids.end());
  std::shared_ptr<AwayArguments> made(new AwayArguments);
  made->missing_ = each.size() + (refs.empty() ? 0 : 1);
  made->ready_ = std::move(ready);
  for (const store::ObjectId& id : each) {
    crossing.Copy(id, [made, id](StatusOr<store::ObjectId> copy) { made->Came(id, std::move(copy)); });
  }
  if (refs.empty()) return made;
  const std::set<store::ObjectId> names(refs.begin(), refs.end());
  crossing.TakeRefs({names.begin(), names.end()},
                    [made](const std::shared_ptr<Handles>& handles) { made->CameRefs(std::move(*handles)); });
  return made;
}

void AwayArguments::Came(const store::ObjectId& id, StatusOr<store::ObjectId> copy) {
  std::unique_lock lock(mutex_);
  if (copy.ok()) handles_.Add(*copy);
  copies_.emplace(id, std::move(copy));
  OneLess(std::move(lock));
}

void AwayArguments::CameRefs(Handles refs) {
  std::unique_lock lock(mutex_);
  handles_.Add(std::move(refs));
  OneLess(std::move(lock));
}

void AwayArguments::OneLess(std::unique_lock<std::mutex> lock) {
  std::function<void()> ready;
  if (--missing_ == 0) ready = std::exchange(ready_, nullptr);
  lock.unlock();
  if (ready) ready();
}

bool AwayArguments::ready() const {
  const std::lock_guard lock(mutex_);
  return missing_ == 0;
}

StatusOr<store::ObjectId> AwayArguments::CopyOf(const store::ObjectId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = copies_.find(id);
  if (found == copies_.end()) return MakeError(ErrorCode::kInternal, "it was not asked for");
  return found->second;
}

}  // namespace troupe::actors
