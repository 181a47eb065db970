#include "runtime/store/core/slots.h"

#include <algorithm>

#include "runtime/store/core/mutant.h"

namespace troupe::store {
namespace {

constexpr std::uint64_t kValueBytesMax = 1ull << 46;
constexpr std::uint64_t kPage = 4096;

std::uint64_t RoundUp(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

// The next eighth of an octave, in whole units.
std::uint64_t ClassOf(std::uint64_t bytes, std::uint64_t unit) {
  std::uint64_t octave = unit;
  while (octave * 2 <= bytes) octave *= 2;
  return RoundUp(bytes, std::max(unit, octave / 8));
}

}  // namespace

std::optional<SegmentShape> ShapeFor(std::uint64_t value_bytes) {
  if (value_bytes > kValueBytesMax) return std::nullopt;
  const std::uint64_t bytes = value_bytes + kSlotHeaderBytes;
  const std::uint64_t small = ClassOf(bytes, kPage);
  if (small <= kSlabSlotMax) {
    return SegmentShape{small, static_cast<std::uint32_t>(kSlabBytes / small)};
  }
  return SegmentShape{ClassOf(bytes, kHugePage), 1};
}

std::uint32_t Slots::Add(const SegmentShape& shape) {
  const std::uint32_t number = ++last_;
  Segment& segment = segments_[number];
  segment.shape = shape;
  segment.slots.resize(shape.slots);
  auto& free = free_[shape.slot_bytes];
  for (std::uint32_t slot = shape.slots; slot > 0; --slot) free.push_back({number, slot - 1});
  return number;
}

std::optional<Taken> Slots::Take(std::uint64_t value_bytes) {
  const std::uint64_t bytes = value_bytes + kSlotHeaderBytes;
  const auto shape = ShapeFor(value_bytes);
  if (!shape) return std::nullopt;
  const std::uint64_t most = std::max(shape->slot_bytes, bytes + bytes / 4);
  for (auto at = free_.lower_bound(bytes); at != free_.end() && at->first <= most; ++at) {
    if (at->second.empty()) continue;
    const SlotAt taken = at->second.back();
    at->second.pop_back();
    Slot& slot = *Find(taken);
    slot.state = SlotState::kWriting;
    return Taken{taken, ++slot.generation};
  }
  return std::nullopt;
}

void Slots::GiveUp(const SlotAt& at) {
  Slot* slot = Find(at);
  if (slot != nullptr && slot->state == SlotState::kWriting) MakeFree(at, *slot);
}

void Slots::Lend(const SlotAt& at, const ProcessId& owner) {
  Slot* slot = Find(at);
  if (slot == nullptr || slot->state != SlotState::kWriting) return;
  slot->state = SlotState::kLent;
  slot->owner = owner;
}

void Slots::Free(const ProcessId& owner, const SlotAt& at, std::uint64_t generation, bool clean) {
  Slot* slot = Find(at);
  if (slot == nullptr || slot->state != SlotState::kLent || slot->owner != owner) return;
  if (slot->generation != generation && !Is(Mutant::kFreeUnfenced)) return;
  if (clean) return MakeFree(at, *slot);
  slot->state = SlotState::kAbandoned;
  CloseIfDone(at.segment);
}

void Slots::OwnerLost(const ProcessId& owner, bool dead) {
  std::vector<std::uint32_t> changed;
  for (auto& [number, segment] : segments_) {
    for (std::uint32_t i = 0; i < segment.slots.size(); ++i) {
      Slot& slot = segment.slots[i];
      if (slot.owner != owner) continue;
      const bool left =
          slot.state == SlotState::kLeft && dead;  // struck first: now nobody needs it
      if (slot.state != SlotState::kLent && !left) continue;
      if (dead && Is(Mutant::kOwnerDeathRecycles)) {
        MakeFree({number, i}, slot);
        continue;
      }
      slot.state = dead ? SlotState::kAbandoned : SlotState::kLeft;
      changed.push_back(number);
    }
  }
  for (const std::uint32_t number : changed) CloseIfDone(number);
}

bool Slots::Trim(std::uint32_t number) {
  if (!Idle(number)) return false;
  Close(number, /*forget=*/true);
  return true;
}

bool Slots::Idle(std::uint32_t number) const {
  const auto found = segments_.find(number);
  if (found == segments_.end()) return false;
  for (const Slot& slot : found->second.slots) {
    if (slot.state != SlotState::kFree) return false;
  }
  return true;
}

SlotState Slots::StateOf(const SlotAt& at) const {
  const auto found = segments_.find(at.segment);
  if (found == segments_.end() || at.slot >= found->second.slots.size())
    return SlotState::kAbandoned;
  return found->second.slots[at.slot].state;
}

std::uint64_t Slots::GenerationOf(const SlotAt& at) const {
  const auto found = segments_.find(at.segment);
  if (found == segments_.end() || at.slot >= found->second.slots.size()) return 0;
  return found->second.slots[at.slot].generation;
}

bool Slots::HasFree(const SegmentShape& shape) const {
  const auto found = free_.find(shape.slot_bytes);
  return found != free_.end() && !found->second.empty();
}

std::size_t Slots::InUse() const {
  std::size_t used = 0;
  for (const auto& [number, segment] : segments_) {
    for (const Slot& slot : segment.slots) {
      if (slot.state == SlotState::kWriting || slot.state == SlotState::kLent) ++used;
    }
  }
  return used;
}

Slots::Slot* Slots::Find(const SlotAt& at) {
  const auto found = segments_.find(at.segment);
  if (found == segments_.end() || at.slot >= found->second.slots.size()) return nullptr;
  return &found->second.slots[at.slot];
}

void Slots::MakeFree(const SlotAt& at, Slot& slot) {
  slot.state = SlotState::kFree;
  slot.owner = ProcessId();
  free_[segments_[at.segment].shape.slot_bytes].push_back(at);
  CloseIfDone(at.segment);
}

void Slots::CloseIfDone(std::uint32_t number) {
  const auto found = segments_.find(number);
  if (found == segments_.end()) return;
  bool ruined = false;
  bool left = false;
  for (const Slot& slot : found->second.slots) {
    if (slot.state == SlotState::kWriting || slot.state == SlotState::kLent) return;
    left = left || slot.state == SlotState::kLeft;
    ruined = ruined || slot.state == SlotState::kAbandoned;
  }
  if (ruined || left) Close(number, /*forget=*/!left);
}

void Slots::Close(std::uint32_t number, bool forget) {
  const auto found = segments_.find(number);
  auto& free = free_[found->second.shape.slot_bytes];
  free.erase(std::remove_if(free.begin(), free.end(),
                            [number](const SlotAt& at) { return at.segment == number; }),
             free.end());
  segments_.erase(found);
  closed_.push_back({number, forget});
}

}  // namespace troupe::store
