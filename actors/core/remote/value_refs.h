// The beginning of an encoded value that holds references (bindings/values/values.h), for processes
// that pass it on between hosts.
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

/// Puts other names in the place of those of the references at the front of an encoded value; does
/// nothing where it holds none.
void RenameRefs(std::string* value,
                const std::function<store::ObjectId(const store::ObjectId&)>& rename);
/// Renames, in place, the references of an encoded value that lies at `value`.
void RenameRefs(char* value, std::size_t bytes,
                const std::function<store::ObjectId(const store::ObjectId&)>& rename);

}  // namespace troupe::actors
