// How values lie in frames and in shared memory, whoever writes them. Pure.
//
// A value is a tag, then: nothing; 8 bytes (int, float); or u32 length and so many bytes, which are
// text, bytes, a pickle, the name of an object of the store, a large value, or references and the
// value that holds them (value_refs.h).
//
// A value with arrays (pickle protocol 5's out-of-band buffers) is written once, in a frame or in
// shared memory, where large ones are read:
//   u32 'TRob'   u32 buffers   u64 head bytes   per buffer: u64 offset, u64 bytes, u64 kind
//   the head: a tagged value   the buffers, at multiples of 64
// The kind of a buffer: 0: its reader may not write to it; 1: it may, and no other reader sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace troupe::actors::form {

enum Tag : unsigned char {
  kNone,
  kTrue,
  kFalse,
  kInt,
  kFloat,
  kBytes,
  kStr,
  kPickle,
  kObject,
  kLarge,
  kRefs
};

inline constexpr std::size_t kScalarBytes = 8;
inline constexpr std::size_t kLengthBytes = 4;

/// The bytes of the value behind its tag and length; false: malformed.
inline bool Split(std::string_view bytes, Tag* tag, std::string_view* content, std::size_t* total) {
  if (bytes.empty() || static_cast<unsigned char>(bytes[0]) > kRefs) return false;
  *tag = static_cast<Tag>(bytes[0]);
  std::size_t head = 1;
  std::size_t size = 0;
  if (*tag == kInt || *tag == kFloat) {
    size = kScalarBytes;
  } else if (*tag >= kBytes) {
    if (bytes.size() < 1 + kLengthBytes) return false;
    std::uint32_t length;
    std::memcpy(&length, bytes.data() + 1, kLengthBytes);
    head += kLengthBytes;
    size = length;
  }
  if (bytes.size() - head < size) return false;
  *content = bytes.substr(head, size);
  *total = head + size;
  return true;
}

inline constexpr std::uint32_t kLargeMagic = 0x626F5254;  // "TRob"

struct LargeHead {
  std::uint32_t magic = kLargeMagic;
  std::uint32_t buffers = 0;
  std::uint64_t head_bytes = 0;
};
struct LargeEntry {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t kind = 0;
};
static_assert(sizeof(LargeHead) == 16 && sizeof(LargeEntry) == 24);

}  // namespace troupe::actors::form
