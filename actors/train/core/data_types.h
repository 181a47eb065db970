// Data types of a group's operations, and the ways to combine numbers. Pure.
//
// The first twelve types and five operations have NCCL's numbers; the others are of communicators
// over memory, and NCCL's refuses them.
#pragma once

#include <cstddef>

namespace troupe::train {

enum class DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8e4m3 = 10,
  kFloat8e5m2 = 11,
  kInt16 = 64,
  kUint16 = 65,
  kBool = 66,  // a byte, 0 or 1
};
inline constexpr int kNcclTypes = 12;

enum class ReduceOp : int {
  kSum = 0,
  kProd = 1,
  kMax = 2,
  kMin = 3,
  kAvg = 4,
  kBitAnd = 64,
  kBitOr = 65,
  kBitXor = 66,
};
inline constexpr int kNcclOps = 5;

/// Bytes of one element; 0 for a number that is no type.
constexpr std::size_t WidthOf(DataType type) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kFloat8e4m3:
    case DataType::kFloat8e5m2:
    case DataType::kBool:
      return 1;
    case DataType::kFloat16:
    case DataType::kBfloat16:
    case DataType::kInt16:
    case DataType::kUint16:
      return 2;
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kFloat32:
      return 4;
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kFloat64:
      return 8;
  }
  return 0;
}

/// "float32"; "type 99" is not known.
const char* NameOf(DataType type);
const char* NameOf(ReduceOp op);

}  // namespace troupe::train
