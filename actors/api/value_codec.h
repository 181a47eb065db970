// Values as bytes of call frames and back: what bindings/values is for Python, for plain values
// alone.
#pragma once

#include <troupe/value.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "actors/core/call/byte_buffer.h"
#include "actors/objects/object_handles.h"
#include "runtime/base/status.h"
#include "runtime/store/pool.h"

namespace troupe::api {

/// The value as it lies in a frame. kInvalid, kTooLarge (4 GiB).
StatusOr<std::string> EncodeValue(const Value& value);
/// Reads the value at the front of `*bytes` and moves past it. An object of the store is read where
/// it lies: it is known here. kInvalid: it is no plain value, which the text says; kInternal: it is
/// no value at all.
StatusOr<Value> DecodeValue(std::string_view* bytes);
/// The value of an object of this process's store.
StatusOr<Value> ValueOfObject(const store::ObjectId& id);

/// Objects that a frame's values name.
struct Named {
  std::vector<store::ObjectId> values;
  bool refs = false;  // references inside values, which C++ does not take
};
/// False: the first `count` values are malformed.
bool FindNamed(std::string_view values, int count, Named* named);
/// If the value at the front is an object by name, reads that and moves past it.
std::optional<store::ObjectId> TakeObjectName(std::string_view* bytes);
void AppendObjectName(actors::ByteBuffer& out, const store::ObjectId& id);

/// Writes an encoded value to the store's memory. kTooLarge: there is none left.
StatusOr<store::Writing> WriteLarge(std::string_view encoded);

}  // namespace troupe::api
