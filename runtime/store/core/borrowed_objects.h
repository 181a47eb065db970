// The references to other processes' objects, by who owns them: found by name in constant time,
// however many there are. Where one lives does not change while it is there.
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
  using OfOwner = std::unordered_map<std::uint64_t, BorrowedObject>;  // by number
  using ByOwner = std::map<ProcessId, OfOwner>;

  BorrowedObject* Find(const ObjectId& id) {
    return const_cast<BorrowedObject*>(std::as_const(*this).Find(id));
  }
  const BorrowedObject* Find(const ObjectId& id) const {
    const OfOwner* const objects = Of(id.owner);
    if (objects == nullptr) return nullptr;
    const auto found = objects->find(id.sequence);
    return found == objects->end() ? nullptr : &found->second;
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

  /// To look through; nullptr: none is borrowed of that owner.
  const ByOwner& by_owner() const { return by_owner_; }
  ByOwner& by_owner() { return by_owner_; }
  const OfOwner* Of(const ProcessId& owner) const {
    const auto found = by_owner_.find(owner);
    return found == by_owner_.end() ? nullptr : &found->second;
  }
  OfOwner* Of(const ProcessId& owner) {
    return const_cast<OfOwner*>(std::as_const(*this).Of(owner));
  }

 private:
  ByOwner by_owner_;
};

}  // namespace troupe::store
