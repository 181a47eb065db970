#include "actors/core/call/object_name.h"

#include <cstdint>
#include <cstring>

namespace troupe::actors {

std::string NameBytes(const store::ObjectId& id) {
  const std::uint64_t words[3] = {id.owner.hi, id.owner.lo, id.sequence};
  return std::string(reinterpret_cast<const char*>(words), sizeof words);
}

std::optional<store::ObjectId> ReadObjectId(std::string_view bytes) {
  if (bytes.size() != kObjectIdBytes) return std::nullopt;
  std::uint64_t words[3];
  std::memcpy(words, bytes.data(), sizeof words);
  const ProcessId owner(words[0], words[1]);
  if (owner.IsNil()) return std::nullopt;
  return store::ObjectId{owner, words[2]};
}

}  // namespace troupe::actors
