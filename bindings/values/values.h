// Python values as bytes of a call frame: a tag, then the value. None, bool, int (64 bits), float,
// bytes and str are written as they are; everything else is a pickle (pickle.h).
//
// All functions need the GIL. Decoding trusts no length: what does not fit is kMalformed.
#pragma once

#include <Python.h>

#include <optional>
#include <string_view>
#include <vector>

#include "actors/core/call/byte_buffer.h"
#include "actors/objects/object_handles.h"
#include "runtime/store/core/object_id.h"

namespace troupe::bindings {

struct Outgoing;

/// Appends `value`, or where it is large what `outgoing` says instead. False: a Python error is
/// set, and `out` is as long as before.
bool EncodeValue(actors::ByteBuffer& out, PyObject* value, Outgoing* outgoing = nullptr);
/// Appends the names of `refs`, the references that were taken out of `value` already, and then
/// `value`. False: a Python error is set.
bool EncodeWithRefs(actors::ByteBuffer& out, PyObject* value, const actors::Handles& refs);
/// Appends the name of an object of the store.
void AppendObjectName(actors::ByteBuffer& out, const store::ObjectId& id);
/// Appends the names of `refs`, the references inside an object of the store, and then its own
/// name. False: an error is set.
bool AppendObjectWithRefs(actors::ByteBuffer& out, const store::ObjectId& id,
                          const std::vector<store::ObjectId>& refs, bool names_remote);
/// Appends the bytes of a large value (object_values.h). False: an error is set.
bool AppendLargeBytes(actors::ByteBuffer& out, std::string_view bytes);

enum class Decoded {
  kOk,
  kMalformed,  // the bytes are no value; no Python error is set
  kRaised,     // unpickling raised; the error is set
};
/// Reads the value at the front of `*bytes` and moves past it. `*value` is a new reference.
Decoded DecodeValue(std::string_view* bytes, PyObject** value);
/// Reads a value whose arrays lie in `buffers`, a list, and that names no objects, from the front
/// of `*bytes`, and moves past it. `*value` is a new reference.
Decoded DecodeValueWith(std::string_view* bytes, PyObject* buffers, PyObject** value);
/// Collects the objects that the first `count` of these values name: values that are objects,
/// references inside values. False: malformed.
bool ObjectsNamed(std::string_view encoded, int count, std::vector<store::ObjectId>* values,
                  std::vector<store::ObjectId>* refs);
/// If the first of these values is an object by name, reads it, and the references named with it,
/// and moves past it.
std::optional<store::ObjectId> TakeObjectName(std::string_view* bytes,
                                              std::vector<store::ObjectId>* refs);
/// The encoded value at the front of `bytes`, without what follows; empty if malformed.
std::string_view FrontValue(std::string_view bytes);

}  // namespace troupe::bindings
