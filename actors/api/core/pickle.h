// Plain values (troupe/value.h) as pickles, which is what Python's side has for lists, tuples and
// dicts: written as protocol 4, read up to protocol 5. Pure.
//
//   PK-1  Reading runs nothing: an opcode that names a class or a function is refused, with that
//         name, and so is everything that is no plain value.
//   PK-2  What a pickle names several times is copied each time, and all copies together are
//         bounded (kExpandedMax), as is how deep values lie in each other (kDepthMax).
//   PK-3  No length in it is trusted.
#pragma once

#include <troupe/value.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace troupe::api {

inline constexpr std::size_t kDepthMax = 200;
inline constexpr std::size_t kExpandedMax = std::size_t{1} << 30;

/// Appends the whole pickle. kInvalid: it lies deeper than kDepthMax.
Status WritePickle(const Value& value, std::string* out);
/// A pickle that is, where it is loaded, what `module.function(*arguments)` gives.
Status WriteCallPickle(std::string_view module, std::string_view function, const Value& arguments,
                       std::string* out);
/// Writes the payload of a launch's ranks: that of `module.function(argument)`, called without
/// arguments.
Status WriteWorkPickle(std::string_view module, std::string_view function, const Value& argument,
                       std::string* out);
/// kInvalid: what it holds that is no plain value, or that it is no pickle.
StatusOr<Value> ReadPickle(std::string_view pickle, std::size_t expanded_max = kExpandedMax);

}  // namespace troupe::api
