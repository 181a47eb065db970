#include "actors/core/remote/remote_lent.h"

#include <utility>

namespace troupe::actors {

void RemoteLent::Forget(Entry& entry) {
  for (const store::ObjectId& name : std::exchange(entry.inside, {})) {
    const auto found = inside_.find(name);
    if (found != inside_.end() && --found->second == 0) inside_.erase(found);
  }
}

void RemoteLent::NoteOn(const store::ObjectId& name, bool on) {
  const auto found = lent_.find(name);
  if (found != lent_.end()) found->second.on = on;
}

bool RemoteLent::Outlives(const store::ObjectId& name) const {
  const auto found = lent_.find(name);
  return found != lent_.end() && found->second.on && store::IsLife(name);
}

std::vector<store::ObjectId> RemoteLent::names() const {
  std::vector<store::ObjectId> names;
  for (const auto& [name, entry] : lent_) names.push_back(name);
  return names;
}

bool RemoteLent::TakeBack(const store::ObjectId& name) {
  const auto found = lent_.find(name);
  if (found == lent_.end()) return false;
  Forget(found->second);
  lent_.erase(found);
  return true;
}

bool RemoteLent::Want(const store::ObjectId& name) {
  const auto found = lent_.find(name);
  if (found == lent_.end()) return false;
  return !std::exchange(found->second.wanted, true);
}

bool RemoteLent::Tell(const store::ObjectId& name, std::uint16_t flags, std::uint64_t bytes,
                      std::vector<store::ObjectId> inside, std::string& out) {
  const auto found = lent_.find(name);
  if (found == lent_.end() || !std::exchange(found->second.wanted, false)) return false;
  BulkFrame frame;
  for (const store::ObjectId& each : inside) {
    frame.word = BulkWord::kInside;
    frame.id = each;
    AppendBulkFrame(out, frame);
  }
  frame.word = BulkWord::kReady;
  frame.id = name;
  frame.offset = flags;
  frame.bytes = inside.size();
  frame.total = bytes;
  AppendBulkFrame(out, frame);
  for (const store::ObjectId& each : inside) ++inside_[each];
  Forget(found->second);  // reported before, on a link that is gone
  found->second.inside = std::move(inside);
  return true;
}

void RemoteLent::Clear() {
  lent_.clear();
  inside_.clear();
}

}  // namespace troupe::actors
