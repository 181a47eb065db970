// Tensors as operations of a group take them: their types' numbers, and what is refused.
#pragma once

#include <functional>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "group_api.h"
#include "work.h"

namespace troupe_torch {

using at::Tensor;

inline int type_of(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kChar:
      return kTroupeInt8;
    case at::kByte:
      return kTroupeUint8;
    case at::kInt:
      return kTroupeInt32;
    case at::kUInt32:
      return kTroupeUint32;
    case at::kLong:
      return kTroupeInt64;
    case at::kUInt64:
      return kTroupeUint64;
    case at::kHalf:
      return kTroupeFloat16;
    case at::kFloat:
      return kTroupeFloat32;
    case at::kDouble:
      return kTroupeFloat64;
    case at::kBFloat16:
      return kTroupeBfloat16;
    case at::kShort:
      return kTroupeInt16;
    case at::kUInt16:
      return kTroupeUint16;
    case at::kBool:
      return kTroupeBool;
    default:
      TORCH_CHECK_TYPE(false, "the backend troupe cannot reduce tensors of ", tensor.scalar_type(),
                       "; it moves tensors of every type");
  }
}

inline int op_of(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return kTroupeSum;
    case c10d::ReduceOp::AVG:
      return kTroupeAvg;
    case c10d::ReduceOp::PRODUCT:
      return kTroupeProd;
    case c10d::ReduceOp::MIN:
      return kTroupeMin;
    case c10d::ReduceOp::MAX:
      return kTroupeMax;
    case c10d::ReduceOp::BAND:
      return kTroupeBitAnd;
    case c10d::ReduceOp::BOR:
      return kTroupeBitOr;
    case c10d::ReduceOp::BXOR:
      return kTroupeBitXor;
    default:
      TORCH_CHECK_VALUE(false,
                        "the backend troupe has SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR and BXOR");
  }
}

inline void check_tensor(const Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.device().is_cpu(),
                    "the backend troupe takes tensors on CPUs, and this one is on ",
                    tensor.device(), ": a group of cpu:troupe,cuda:nccl takes both");
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided,
                    "the backend troupe takes dense tensors, and this one is ", tensor.layout());
}

inline void check_tensors(const Tensors& tensors) {
  for (const auto& each : tensors) check_tensor(each);
}

inline const Tensor& one(const Tensors& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "the backend troupe takes one tensor a rank, and got ",
                    tensors.size());
  check_tensor(tensors[0]);
  return tensors[0];
}

}  // namespace troupe_torch
