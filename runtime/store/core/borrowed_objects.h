// The references to other processes' objects, by who owns them: found by name in constant time, however many there are.
// Where one lives does not change while it is there.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "runtime/store/core/borrowed_object.h"
#include "runtime/store/core/object_id.h"

namespace troupe::store {

class BorrowedObjects {
 public:
  BorrowedObject* Find(const ObjectId& id) { return const_cast<BorrowedObject*>(std::as_const(*this).Find(id)); }
  const BorrowedObject* Find(const ObjectId& id) const {
    const auto owner = by_owner_.find(id.owner);
    if (owner == by_owner_.end()) return nullptr;
    const auto found = owner->second.find(id.sequence);
    return found == owner->second.end() ? nullptr : &found->second;
  }
  /// True: it was not there.
  std::pair<BorrowedObject*, bool> Make(const ObjectId& id) {
    const auto [at, fresh] = by_owner_[id.owner].try_emplace(id.sequence);
    return {&at->second, fresh};
  }
  void Erase(const ObjectId& id) {
    const auto owner = by_owner_.find(id.owner);
    if (owner == by_owner_.end()) return;
    owner->second.erase(id.sequence);
    if (owner->second.empty()) by_owner_.erase(owner);
  }
  bool empty() const { return by_owner_.empty(); }

  /// `each(id, object)`, which neither makes nor erases one; true from it ends this, which says so.
  template <typename Each>
  bool AnyOf(const ProcessId& owner, Each each) {
    const auto found = by_owner_.find(owner);
    return found != by_owner_.end() && AnyIn(found->first, found->second, each);
  }
  template <typename Each>
  bool AnyOf(const ProcessId& owner, Each each) const {
    const auto found = by_owner_.find(owner);
    return found != by_owner_.end() && AnyIn(found->first, found->second, each);
  }
  template <typename Each>
  bool Any(Each each) {
    for (auto& [owner, objects] : by_owner_) {
      if (AnyIn(owner, objects, each)) return true;
    }
    return false;
  }
  template <typename Each>
  bool Any(Each each) const {
    for (const auto& [owner, objects] : by_owner_) {
      if (AnyIn(owner, objects, each)) return true;
    }
    return false;
  }

 private:
  using OfOwner = std::unordered_map<std::uint64_t, BorrowedObject>;  // by number
  template <typename Objects, typename Each>
  static bool AnyIn(const ProcessId& owner, Objects& objects, Each& each) {
    for (auto& [sequence, object] : objects) {
      if (each(ObjectId{owner, sequence}, object)) return true;
    }
    return false;
  }

  std::map<ProcessId, OfOwner> by_owner_;
};

}  // namespace troupe::store
