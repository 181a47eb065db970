#include "actors/object_list.h"

#include "actors/object_store.h"
#include "actors/object_turn.h"

namespace troupe::actors {
namespace {

std::uint64_t BytesOf(const store::Value& value) {
  if (!value.locations.empty()) return value.locations.front().bytes;
  return value.bytes != nullptr ? value.bytes->size() : 0;
}

}  // namespace

std::vector<ListedObject> ObjectStore::List(std::size_t most) {
  Turn turn(*this);
  std::vector<ListedObject> found;
  for (const auto& [sequence, object] : table_.state().owned) {
    const store::ObjectId id{self_, sequence};
    if (found.size() == most) return found;
    if (store::IsLife(id)) continue;
    ListedObject& each = found.emplace_back();
    each.name = Away(id);
    each.owned = each.name.owner == self_;
    each.kind = object.value.kind;
    each.bytes = BytesOf(object.value);
    each.holds = object.holds;
    each.lent = object.borrowers.size() + object.loans.size();
    each.contained = object.contained.size();
  }
  for (const auto& [owner, objects] : table_.state().borrowed.by_owner()) {
    for (const auto& [sequence, ref] : objects) {
      const store::ObjectId id{owner, sequence};
      if (found.size() == most) return found;
      if (store::IsLife(id)) continue;
      ListedObject& each = found.emplace_back();
      each.name = Away(id);
      each.gone = ref.state == store::RefState::kDead;
      each.kind = ref.value.kind;
      each.bytes = BytesOf(ref.value);
      each.holds = ref.holds;
      each.lent = ref.lent.size();
      each.contained = ref.contained.size();
    }
  }
  return found;
}

}  // namespace troupe::actors
