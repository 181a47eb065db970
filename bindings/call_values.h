// Python values as bytes of a call frame: a tag, then the value. None, bool, int (64 bits), float,
// bytes and str are written as they are; everything else is a pickle (call_pickle.h).
//
// All functions need the GIL. Decoding trusts no length: what does not fit is kMalformed.
#pragma once

#include <Python.h>

#include <string_view>

#include "actors/byte_buffer.h"

namespace troupe::bindings {

/// Appends `value`. False: a Python error is set, and `out` is as long as before.
bool EncodeValue(actors::ByteBuffer& out, PyObject* value);

enum class Decoded {
  kOk,
  kMalformed,  // the bytes are no value; no Python error is set
  kRaised,     // unpickling raised; the error is set
};
/// Reads the value at the front of `*bytes` and moves past it. `*value` is a new reference.
Decoded DecodeValue(std::string_view* bytes, PyObject** value);
/// The encoded value at the front of `bytes`, without what follows; empty if malformed.
std::string_view FrontValue(std::string_view bytes);

}  // namespace troupe::bindings
