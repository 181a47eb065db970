// What an encoded value that holds references begins with (bindings/values/values.h), for who passes it on between hosts.
//
//   u8 kRefsTag   u32 bytes that follow   u32 references   24 bytes each: their names   the value
//
// Pure; little endian.
#pragma once

#include <functional>
#include <string>

#include "runtime/store/core/object_id.h"

namespace troupe::actors {

inline constexpr unsigned char kRefsTag = 10;

/// Puts other names in the place of those at the front of `value`; does nothing where it is no such value.
void RenameRefs(std::string* value, const std::function<store::ObjectId(const store::ObjectId&)>& rename);
/// The same of bytes that lie elsewhere.
void RenameRefs(char* value, std::size_t bytes, const std::function<store::ObjectId(const store::ObjectId&)>& rename);

}  // namespace troupe::actors
