// Python buffers over the memory of a value's arrays: shared with other processes, mapped for this
// one alone, or copied. Needs the GIL.
//
// Arrays of actors::kLargeBytes and more that lie in an object of the store are read where they
// lie. All others are copied, to addresses that are multiples of kArrayAlignment.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "actors/objects/object_view.h"
#include "bindings/support/nanobind.h"

namespace troupe::bindings {

/// Alignment of an array's memory: a multiple of this, as vector units and caches want it.
inline constexpr std::size_t kArrayAlignment = 64;
/// Arrays from this size on have aligned memory of their own, outside the pickle of their value.
inline constexpr std::size_t kAlignedFromBytes = 1024;

/// Memory of so many bytes at `offset` of an object. `writable`: the reader may write to it, which
/// no other reader sees. A new reference; nullptr: an error is set.
PyObject* NewObjectMemory(std::shared_ptr<actors::ObjectView> view, std::uint64_t offset,
                          std::uint64_t bytes, bool writable);
/// An aligned copy. A new reference; nullptr: an error is set.
PyObject* NewCopiedMemory(std::string_view bytes, bool writable);

/// Adds `_map_privately` and `_writable_memory` to the module.
void BindValueMemory(nanobind::module_& m);

}  // namespace troupe::bindings
