// Names of objects, of the memory that holds them, and of where that is. Values.
//
// An object is named by the process that owns it (an incarnation: a process that starts again is
// another one) and a number that process never uses twice. A slot is the memory of one value: a
// whole segment, or a part of one that small values share. What a slot holds is told by its
// generation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>

#include "runtime/base/ids.h"

namespace troupe::store {

struct ObjectId {
  ProcessId owner;
  std::uint64_t sequence = 0;

  std::string Text() const { return owner.Short() + "#" + std::to_string(sequence); }
  friend bool operator==(const ObjectId& a, const ObjectId& b) {
    return a.owner == b.owner && a.sequence == b.sequence;
  }
  friend bool operator<(const ObjectId& a, const ObjectId& b) {
    return a.owner != b.owner ? a.owner < b.owner : a.sequence < b.sequence;
  }
};

/// The numbers of one owner are its own choice, and nearly all different.
struct ObjectIdHash {
  std::size_t operator()(const ObjectId& id) const {
    return static_cast<std::size_t>((id.sequence ^ id.owner.lo) * 0x9E3779B97F4A7C15ull);
  }
};

/// An object that is held and never read: it stands for an actor, which is wanted while anybody
/// holds it. The handle that brings it is good without it, so that where references cannot go it is
/// left behind.
inline constexpr std::uint64_t kLifeBit = std::uint64_t{1} << 63;
inline bool IsLife(const ObjectId& id) { return (id.sequence & kLifeBit) != 0; }

struct SlotId {
  ProcessId maker;
  std::uint32_t segment = 0;
  std::uint32_t slot = 0;

  friend bool operator==(const SlotId& a, const SlotId& b) {
    return a.maker == b.maker && a.segment == b.segment && a.slot == b.slot;
  }
  friend bool operator<(const SlotId& a, const SlotId& b) {
    return std::tie(a.maker, a.segment, a.slot) < std::tie(b.maker, b.segment, b.slot);
  }
};

/// The location of a value's bytes: on which node, in which slot, written as which generation.
struct Location {
  NodeId node;
  SlotId slot;
  std::uint64_t generation = 0;
  std::uint64_t offset = 0;  // begin of the value in the segment's file
  std::uint64_t bytes = 0;

  friend bool operator==(const Location& a, const Location& b) {
    return a.node == b.node && a.slot == b.slot && a.generation == b.generation &&
           a.offset == b.offset && a.bytes == b.bytes;
  }
};

}  // namespace troupe::store
