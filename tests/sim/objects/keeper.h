// The keeper: a node's worker, which holds the descriptors of segments made on its node, so that a
// value outlives its maker. Pure: the shell holds the descriptors and does what `actions` say.
//
//   Assign by the maker, before its reply: the slot holds that generation of that object
//   the maker's death, after all it had sent was read: each owner is asked whether it has the value
//   answer keep: kept until the owner's Free;  answer free, the owner's end: gone
//
//   KP-1 (O7)  Nothing is dropped for the maker's death alone.
//   KP-2 (O2)  Every slot of a dead maker ends: by the owner's answer, its Free, or its own death;
//   then
//              the segment's descriptor is closed.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/store/core/object_id.h"

namespace troupe::store {

/// Ask the owner whether it has the value. An owner nobody knows any more is dead: call OwnerDied.
struct AskAdopt {
  ObjectId object;
  SlotId slot;
  std::uint64_t generation = 0;
  bool maker_dead = false;  // else it has struck the owner, and lives
};
/// Close the segment's descriptor, tell who got it to unmap.
struct CloseKept {
  ProcessId maker;
  std::uint32_t segment = 0;
};
using KeeperAction = std::variant<AskAdopt, CloseKept>;

class Keeper {
 public:
  void Assign(const SlotId& slot, std::uint64_t generation, const ObjectId& object);
  void Forget(const ProcessId& maker, std::uint32_t segment);
  /// After everything it had sent has been read; it may have children that hold its socket.
  void MakerDied(const ProcessId& maker);
  /// The maker cannot reach the owners of what is in it: it is treated as after the maker's death.
  void Leave(const ProcessId& maker, std::uint32_t segment);
  void OwnerDied(const ProcessId& owner);
  void Answer(const SlotId& slot, std::uint64_t generation, bool keep);
  /// By the owner, when the maker is gone.
  void Free(const SlotId& slot, std::uint64_t generation);

  bool Empty() const { return segments_.empty(); }
  std::size_t segments() const { return segments_.size(); }
  bool Has(const SlotId& slot) const;
  bool HasAnyOf(const ProcessId& maker) const;
  std::vector<KeeperAction> TakeActions() { return std::exchange(actions_, {}); }

 private:
  struct Kept {
    std::uint64_t generation = 0;
    ObjectId object;
  };
  using SegmentKey = std::pair<ProcessId, std::uint32_t>;
  struct Segment {
    bool orphan = false;  // the maker is dead, or has left it
    std::map<std::uint32_t, Kept> slots;
  };

  void Orphan(const SegmentKey& key, Segment& segment, bool maker_dead);
  void Drop(const SlotId& slot);
  void CloseIfEmpty(const SegmentKey& key);

  std::map<SegmentKey, Segment> segments_;
  std::vector<KeeperAction> actions_;
};

}  // namespace troupe::store
