// The first line of a slot: what the value after it is. Not the proof that it is the right one
// (that is the protocol's), a second line of defence.
#pragma once

#include <cstdint>

#include "runtime/store/core/slots.h"

namespace troupe::store {

inline constexpr std::uint64_t kSlotMagic = 0x746f6c7365707254;  // "Trpeslot"

struct SlotHeader {
  std::uint64_t magic = kSlotMagic;
  std::uint64_t generation = 0;
  std::uint64_t bytes = 0;
  std::uint64_t reserved[5] = {};
};
static_assert(sizeof(SlotHeader) == kSlotHeaderBytes);

}  // namespace troupe::store
