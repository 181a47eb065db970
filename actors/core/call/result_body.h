// What a reply with kFlagObjects begins with. Pure.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace troupe::actors {

/// `contained` loans and, kInFrame, the value's bytes follow; from another host names of references, no loans. Little
/// endian.
struct ResultBody {
  enum : std::uint32_t {
    kInMemory = 1,  // of the maker, on this host
    kInFrame = 2,
    kRemote = 3,  // of the maker, on another host: its object `generation`, of `bytes`, is pulled
    kRemoteInFrame = 4,  // likewise, with references, which `generation` keeps
  };
  std::uint32_t kind = kInMemory;
  std::uint32_t contained = 0;
  std::uint64_t maker[2] = {0, 0};
  std::uint32_t segment = 0;
  std::uint32_t slot = 0;
  std::uint64_t generation = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(ResultBody) == 56);

/// Reads it from the front of a reply's body and moves past it. False: that is too short.
inline bool TakeResultBody(std::string_view* body, ResultBody* read) {
  if (body->size() < sizeof *read) return false;
  std::memcpy(read, body->data(), sizeof *read);
  body->remove_prefix(sizeof *read);
  return true;
}

}  // namespace troupe::actors
