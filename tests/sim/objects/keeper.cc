#include "tests/sim/objects/keeper.h"

#include "runtime/store/core/mutant.h"

namespace troupe::store {

void Keeper::Assign(const SlotId& slot, std::uint64_t generation, const ObjectId& object) {
  segments_[{slot.maker, slot.segment}].slots[slot.slot] = {generation, object};
}

void Keeper::Forget(const ProcessId& maker, std::uint32_t segment) {
  if (segments_.erase({maker, segment}) != 0) actions_.push_back(CloseKept{maker, segment});
}

void Keeper::MakerDied(const ProcessId& maker) {
  std::vector<SegmentKey> keys;
  for (auto at = segments_.lower_bound({maker, 0});
       at != segments_.end() && at->first.first == maker; ++at) {
    if (Is(Mutant::kDropAtDeath)) at->second.slots.clear();
    Orphan(at->first, at->second, /*maker_dead=*/true);
    keys.push_back(at->first);
  }
  for (const SegmentKey& key : keys) CloseIfEmpty(key);
}

void Keeper::Leave(const ProcessId& maker, std::uint32_t segment) {
  const auto found = segments_.find({maker, segment});
  if (found == segments_.end()) return;
  Orphan(found->first, found->second, /*maker_dead=*/false);
  CloseIfEmpty({maker, segment});
}

void Keeper::Orphan(const SegmentKey& key, Segment& segment, bool maker_dead) {
  if (segment.orphan) return;
  segment.orphan = true;
  for (const auto& [number, kept] : segment.slots) {
    const SlotId slot{key.first, key.second, number};
    actions_.push_back(AskAdopt{kept.object, slot, kept.generation, maker_dead});
  }
}

void Keeper::OwnerDied(const ProcessId& owner) {
  std::vector<SlotId> gone;
  for (const auto& [key, segment] : segments_) {
    if (!segment.orphan) continue;  // the maker learns of it too, and takes the segment back
    for (const auto& [number, kept] : segment.slots) {
      if (kept.object.owner == owner) gone.push_back({key.first, key.second, number});
    }
  }
  for (const SlotId& slot : gone) Drop(slot);
}

void Keeper::Answer(const SlotId& slot, std::uint64_t generation, bool keep) {
  if (!keep) Free(slot, generation);
}

void Keeper::Free(const SlotId& slot, std::uint64_t generation) {
  const auto found = segments_.find({slot.maker, slot.segment});
  if (found == segments_.end() || !found->second.orphan) return;
  const auto kept = found->second.slots.find(slot.slot);
  if (kept != found->second.slots.end() && kept->second.generation == generation) Drop(slot);
}

bool Keeper::Has(const SlotId& slot) const {
  const auto found = segments_.find({slot.maker, slot.segment});
  return found != segments_.end() && found->second.slots.count(slot.slot) != 0;
}

bool Keeper::HasAnyOf(const ProcessId& maker) const {
  const auto found = segments_.lower_bound({maker, 0});
  return found != segments_.end() && found->first.first == maker;
}

void Keeper::Drop(const SlotId& slot) {
  const SegmentKey key{slot.maker, slot.segment};
  segments_[key].slots.erase(slot.slot);
  CloseIfEmpty(key);
}

void Keeper::CloseIfEmpty(const SegmentKey& key) {
  const auto found = segments_.find(key);
  if (found == segments_.end() || !found->second.slots.empty()) return;
  segments_.erase(found);
  actions_.push_back(CloseKept{key.first, key.second});
}

}  // namespace troupe::store
