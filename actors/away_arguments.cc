#include "actors/away_arguments.h"

#include <set>
#include <utility>

namespace troupe::actors {

std::shared_ptr<AwayArguments> AwayArguments::Begin(Crossing& crossing, const std::vector<store::ObjectId>& ids,
                                                    std::function<void()> ready) {
  const std::set<store::ObjectId> each(ids.begin(), ids.end());
  std::shared_ptr<AwayArguments> made(new AwayArguments);
  made->missing_ = each.size();
  made->ready_ = std::move(ready);
  for (const store::ObjectId& id : each) {
    crossing.Copy(id, [made, id](StatusOr<store::ObjectId> copy) { made->Came(id, std::move(copy)); });
  }
  return made;
}

void AwayArguments::Came(const store::ObjectId& id, StatusOr<store::ObjectId> copy) {
  std::function<void()> ready;
  {
    const std::lock_guard lock(mutex_);
    if (copy.ok()) handles_.Add(*copy);
    copies_.emplace(id, std::move(copy));
    if (--missing_ == 0) ready = std::exchange(ready_, nullptr);
  }
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
