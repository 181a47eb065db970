// The maker's side: which slots of its segments hold what, and which may be written again. Pure.
//
//   FREE(g) --Take--> WRITING(g+1) --Lend--> LENT(g+1, owner) --clean Free of g+1--> FREE(g+1)
//   WRITING --GiveUp--> FREE;  LENT --unclean Free, owner dead--> ABANDONED;  --owner struck-->
//   LEFT
//
//   SL-1 (O1)  A slot is written only after its last value's owner said, for this very generation,
//   that
//              every reader has let go cleanly. Nothing else makes it FREE: no time-out, no death.
//   SL-2       A Free for another generation, or by another than the owner, changes nothing.
//   SL-3       A segment with an abandoned or left slot is closed once no other slot of it is in
//   use. It
//              is taken back from the worker (`forget`) unless one was left there for its owner.
//
// Values are written after a header line in the slot. Sizes: classes of an eighth of an octave, in
// whole pages below 1 MiB, where several slots share a segment, and in whole 2 MiB above. A slot
// serves a value if it is at most a quarter too large.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"

namespace troupe::store {

inline constexpr std::uint64_t kSlotHeaderBytes = 64;
inline constexpr std::uint64_t kHugePage = 2u << 20;
inline constexpr std::uint64_t kSlabBytes = 8u << 20;
inline constexpr std::uint64_t kSlabSlotMax = 1u << 20;

/// How a segment for a value of so many bytes looks.
struct SegmentShape {
  std::uint64_t slot_bytes = 0;  // header included
  std::uint32_t slots = 0;

  std::uint64_t bytes() const { return slots == 1 ? slot_bytes : kSlabBytes; }
  friend bool operator==(const SegmentShape& a, const SegmentShape& b) {
    return a.slot_bytes == b.slot_bytes && a.slots == b.slots;
  }
};
/// nullopt: more than an address space holds.
std::optional<SegmentShape> ShapeFor(std::uint64_t value_bytes);

enum class SlotState : std::uint8_t { kFree, kWriting, kLent, kAbandoned, kLeft };

struct SlotAt {
  std::uint32_t segment = 0;
  std::uint32_t slot = 0;

  friend bool operator<(const SlotAt& a, const SlotAt& b) {
    return a.segment != b.segment ? a.segment < b.segment : a.slot < b.slot;
  }
};
struct Taken {
  SlotAt at;
  std::uint64_t generation = 0;
};
/// Unmap it unless views live, close its descriptor, tell readers to do the same; `forget`: and the
/// worker.
struct CloseSegment {
  std::uint32_t segment = 0;
  bool forget = true;
};

class Slots {
 public:
  /// A segment the shell has made; all its slots are free. Its number: 1, 2, ...
  std::uint32_t Add(const SegmentShape& shape);
  /// A free slot for a value of so many bytes, now WRITING; the one freed last is the warmest.
  std::optional<Taken> Take(std::uint64_t value_bytes);
  /// The value was not finished.
  void GiveUp(const SlotAt& at);
  /// A value is written and goes to its owner.
  void Lend(const SlotAt& at, const ProcessId& owner);
  void Free(const ProcessId& owner, const SlotAt& at, std::uint64_t generation, bool clean);
  void OwnerLost(const ProcessId& owner, bool dead);
  /// A segment none of whose slots is in use, closed to give memory back. False: one is.
  bool Trim(std::uint32_t segment);
  /// No slot of it is in use.
  bool Idle(std::uint32_t segment) const;

  SlotState StateOf(const SlotAt& at) const;
  std::uint64_t GenerationOf(const SlotAt& at) const;
  bool HasFree(const SegmentShape& shape) const;
  /// Slots being written, or lent to an owner.
  std::size_t InUse() const;
  std::size_t segments() const { return segments_.size(); }
  std::vector<CloseSegment> TakeClosed() { return std::exchange(closed_, {}); }

 private:
  struct Slot {
    SlotState state = SlotState::kFree;
    std::uint64_t generation = 0;
    ProcessId owner;
  };
  struct Segment {
    SegmentShape shape;
    std::vector<Slot> slots;
  };

  Slot* Find(const SlotAt& at);
  void MakeFree(const SlotAt& at, Slot& slot);
  void CloseIfDone(std::uint32_t number);
  void Close(std::uint32_t number, bool forget);

  std::uint32_t last_ = 0;
  std::map<std::uint32_t, Segment> segments_;
  std::map<std::uint64_t, std::vector<SlotAt>> free_;  // by slot bytes; the latest at the end
  std::vector<CloseSegment> closed_;
};

}  // namespace troupe::store
