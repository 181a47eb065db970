// Tensors as operations of a group take them: their types' numbers, and what is refused.
#pragma once

#include <functional>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "group_api.h"
#include "work.h"

namespace troupe_torch {

using at::Tensor;

enum Kind {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSend,
  kRecv,
  kGather,
  kScatter,
  kBarrier
};
enum Op {
  kSum = 0,
  kProd = 1,
  kMax = 2,
  kMin = 3,
  kAvg = 4,
  kBitAnd = 64,
  kBitOr = 65,
  kBitXor = 66
};
constexpr int kUint8 = 1;

inline int type_of(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kChar:
      return 0;
    case at::kByte:
      return kUint8;
    case at::kInt:
      return 2;
    case at::kUInt32:
      return 3;
    case at::kLong:
      return 4;
    case at::kUInt64:
      return 5;
    case at::kHalf:
      return 6;
    case at::kFloat:
      return 7;
    case at::kDouble:
      return 8;
    case at::kBFloat16:
      return 9;
    case at::kShort:
      return 64;
    case at::kUInt16:
      return 65;
    case at::kBool:
      return 66;
    default:
      TORCH_CHECK_TYPE(false, "the backend troupe cannot reduce tensors of ", tensor.scalar_type(),
                       "; it moves tensors of every type");
  }
}

inline int op_of(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return kSum;
    case c10d::ReduceOp::AVG:
      return kAvg;
    case c10d::ReduceOp::PRODUCT:
      return kProd;
    case c10d::ReduceOp::MIN:
      return kMin;
    case c10d::ReduceOp::MAX:
      return kMax;
    case c10d::ReduceOp::BAND:
      return kBitAnd;
    case c10d::ReduceOp::BOR:
      return kBitOr;
    case c10d::ReduceOp::BXOR:
      return kBitXor;
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
