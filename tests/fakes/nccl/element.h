// Arithmetic on NCCL's types, small floats included: what a reduction's kernel computes.
#pragma once

#include <cstddef>

#include "actors/train/nccl_types.h"

namespace troupe::fakes {

/// out[i] = op over ranks of in[rank][i], in rank order, in a type at least as wide, rounded once.
/// `out` may be one of `in`. Floats average, integers divide and cut off.
void ReduceRanks(void* out, const char* const* in, int ranks, std::size_t count,
                 train::NcclType type, train::NcclOp op);

/// A small float as a float and back, to the nearest even: the types of 8 and 16 bits.
float ToFloat(unsigned bits, train::NcclType type);
unsigned FromFloat(float value, train::NcclType type);

}  // namespace troupe::fakes
