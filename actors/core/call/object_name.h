// An object's name as bytes: what frames, slots and pickles carry of it. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/store/core/object_id.h"

namespace troupe::actors {

/// The bytes of a name: the owner's two words and the number, in this machine's byte order.
inline constexpr std::size_t kObjectIdBytes = 24;

/// The name as bytes; ReadObjectId is the inverse.
std::string NameBytes(const store::ObjectId& id);
/// nullopt: these bytes are no name (another length, or no owner).
std::optional<store::ObjectId> ReadObjectId(std::string_view bytes);

}  // namespace troupe::actors
