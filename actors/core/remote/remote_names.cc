#include "actors/core/remote/remote_names.h"

#include <utility>

namespace troupe::actors {

store::ObjectId RemoteNames::NameOf(const store::ObjectId& id) const {
  const auto found = known_as_.find(id);
  return found != known_as_.end() ? found->second : id;
}

store::ObjectId RemoteNames::Here(const store::ObjectId& name) const {
  const auto found = here_.find(name);
  return found != here_.end() ? found->second : name;
}

void RemoteNames::Call(const store::ObjectId& id, const store::ObjectId& name) {
  if (!(name == id) && known_as_.emplace(id, name).second) here_[name] = id;
}

void RemoteNames::StandFor(const store::ObjectId& id, const store::ObjectId& name) {
  stand_ins_.emplace(id, StandIn{/*asleep=*/!store::IsLife(name), /*lost=*/false});
  here_[name] = id;
  known_as_[id] = name;
}

bool RemoteNames::Asleep(const store::ObjectId& id) const {
  const auto found = stand_ins_.find(id);
  return found != stand_ins_.end() && found->second.asleep;
}

std::optional<store::ObjectId> RemoteNames::Rouse(const store::ObjectId& id) {
  const auto found = stand_ins_.find(id);
  if (found == stand_ins_.end() || !std::exchange(found->second.asleep, false)) return std::nullopt;
  return NameOf(id);
}

void RemoteNames::Lose(const store::ObjectId& id) {
  const auto found = stand_ins_.find(id);
  if (found != stand_ins_.end()) found->second.lost = true;
}

bool RemoteNames::Lost(const store::ObjectId& id) const {
  const auto found = stand_ins_.find(id);
  return found != stand_ins_.end() && found->second.lost;
}

RemoteNames::Tell RemoteNames::LentOn(const store::ObjectId& id, bool lent) {
  if (!store::IsLife(id)) return Tell::kNobody;
  const bool stands_in = StandsIn(id);
  if (id.owner == self_ && !stands_in) return Tell::kNobody;  // ends with this process
  std::size_t& times = lent_on_[id];
  const bool news = lent ? times++ == 0 : times != 0 && --times == 0;
  if (times == 0) lent_on_.erase(id);
  if (!news) return Tell::kNobody;
  return stands_in ? Tell::kSource : Tell::kOwner;
}

RemoteNames::Tell RemoteNames::Borrowed(const store::ObjectId& id, bool borrowed) {
  if (!store::IsLife(id) || !StandsIn(id)) return Tell::kNobody;
  const bool changes = borrowed ? lent_beside_.insert(id).second : lent_beside_.erase(id) != 0;
  return changes ? LentOn(id, borrowed) : Tell::kNobody;
}

RemoteNames::Handle RemoteNames::HandedOn(const ProcessId& borrower, const store::ObjectId& id,
                                          bool lent, bool borrows) {
  if (id.owner != self_ || !store::IsLife(id)) return Handle::kNone;
  if (!lent) return held_lent_on_.erase({borrower, id}) != 0 ? Handle::kDrop : Handle::kNone;
  return borrows && held_lent_on_.emplace(borrower, id).second ? Handle::kAdd : Handle::kNone;
}

std::optional<store::ObjectId> RemoteNames::Forget(const store::ObjectId& id) {
  lent_on_.erase(id);
  lent_beside_.erase(id);
  const auto called = known_as_.find(id);
  if (called == known_as_.end()) return std::nullopt;
  const store::ObjectId name = called->second;
  const auto latest = here_.find(name);
  if (latest != here_.end() && latest->second == id) here_.erase(latest);
  known_as_.erase(called);
  if (stand_ins_.erase(id) == 0) return std::nullopt;
  return name;
}

std::size_t RemoteNames::size() const {
  return known_as_.size() + here_.size() + stand_ins_.size() + lent_on_.size() +
         lent_beside_.size();
}

}  // namespace troupe::actors
