#include "actors/objects/object_list.h"

#include "actors/objects/object_store.h"
#include "actors/objects/object_turn.h"

namespace troupe::actors {
namespace {

std::uint64_t BytesOf(const store::Value& value) {
  if (!value.locations.empty()) return value.locations.front().bytes;
  return value.bytes != nullptr ? value.bytes->size() : 0;
}

/// The fields common to owned and borrowed objects.
template <class Object>
ListedObject Described(const store::ObjectId& name, const Object& object) {
  ListedObject listed;
  listed.name = name;
  listed.kind = object.value.kind;
  listed.bytes = BytesOf(object.value);
  listed.holds = object.holds;
  listed.contained = object.contained.size();
  return listed;
}

}  // namespace

std::vector<ListedObject> ObjectStore::List(std::size_t most) {
  Turn turn(*this);
  std::vector<ListedObject> found;
  for (const auto& [sequence, object] : table_.state().owned) {
    const store::ObjectId id{self_, sequence};
    if (found.size() == most) return found;
    if (store::IsLife(id)) continue;
    ListedObject& each = found.emplace_back(Described(names_.NameOf(id), object));
    each.owned = each.name.owner == self_;
    each.lent = object.borrowers.size() + object.loans.size();
  }
  for (const auto& [owner, objects] : table_.state().borrowed.by_owner()) {
    for (const auto& [sequence, ref] : objects) {
      const store::ObjectId id{owner, sequence};
      if (found.size() == most) return found;
      if (store::IsLife(id)) continue;
      ListedObject& each = found.emplace_back(Described(names_.NameOf(id), ref));
      each.gone = ref.state == store::RefState::kDead;
      each.lent = ref.lent.size();
    }
  }
  return found;
}

}  // namespace troupe::actors
