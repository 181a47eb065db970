// The beginning of a reply with kFlagObjects. Pure.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace troupe::actors {

/// Little endian. Behind it follow `contained` loans (from another host: names of references) and,
/// where the kind says so, the value's bytes.
struct ResultBody {
  enum : std::uint32_t {
    kInMemory = 1,  // the value lies in the maker's memory, on this host
    kInFrame = 2,   // the value follows; its maker is on this host
    kRemote = 3,    // from another host: the maker's object `generation`, of `bytes`, is pulled
    kRemoteInFrame = 4,  // from another host: it follows; object `generation` keeps its references
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
