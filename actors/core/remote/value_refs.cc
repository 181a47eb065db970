#include "actors/core/remote/value_refs.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "actors/core/call/object_name.h"

namespace troupe::actors {

void RenameRefs(char* value, std::size_t bytes,
                const std::function<store::ObjectId(const store::ObjectId&)>& rename) {
  constexpr std::size_t kHeadBytes = 1 + 2 * sizeof(std::uint32_t);
  if (bytes < kHeadBytes || static_cast<unsigned char>(value[0]) != kRefsTag) return;
  std::uint32_t count = 0;
  std::memcpy(&count, value + 1 + sizeof count, sizeof count);
  const std::size_t room = (bytes - kHeadBytes) / kObjectIdBytes;
  char* at = value + kHeadBytes;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, room); ++i, at += kObjectIdBytes) {
    const std::optional<store::ObjectId> name = ReadObjectId({at, kObjectIdBytes});
    if (name) std::memcpy(at, NameBytes(rename(*name)).data(), kObjectIdBytes);
  }
}

void RenameRefs(std::string* value,
                const std::function<store::ObjectId(const store::ObjectId&)>& rename) {
  RenameRefs(value->data(), value->size(), rename);
}

}  // namespace troupe::actors
