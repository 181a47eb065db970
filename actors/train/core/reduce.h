// Numbers of several ranks put together element by element, always in the order of the ranks: the
// same bits whichever rank does it, in whichever pieces. Pure.
//
// The 16-bit floating types are summed in float and rounded once. Sums and products of integers
// wrap around; of bool, a sum is "or" and a product "and".
#pragma once

#include <cstddef>

#include "actors/train/core/data_types.h"

namespace troupe::train {

/// Makes `into[i]` of `sources[0][i]`, `sources[1][i]`, ...; `into` may be one of them. An average
/// divides by `ranks`.
using Reducer = void (*)(void* into, const void* const* sources, std::size_t sources_count,
                         std::size_t count, std::size_t ranks);

/// Null where the type has no such operation: averages of integers, bits of floating types.
Reducer ReducerOf(DataType type, ReduceOp op);

}  // namespace troupe::train
