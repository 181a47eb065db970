// The parts of NCCL that this project uses, declared by itself: nothing of NCCL is needed to build,
// and the wheel runs where there is none. Pure declarations of NCCL's ABI, which is stable within
// 2.x.
//
// tests/actors/train/abi_test.cc compares them with the header of NVIDIA's wheel, where that is
// installed. The fake libraries of tests/fakes export the same functions.
#pragma once

#include <climits>
#include <cstddef>
#include <iterator>

#include "actors/train/cuda_types.h"

// NCCL's own name of the type behind its handles, so that a debugger shows the library's.
struct ncclComm;

namespace troupe::train {

using NcclComm = ::ncclComm*;

/// The meeting point of a group's ranks: the address of a listener in the process that made it.
struct NcclUniqueId {
  char internal[128];
};

enum class NcclResult : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum class NcclType : int {
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
};

/// Bytes of one element; 0 for a number that is no type.
constexpr std::size_t WidthOf(NcclType type) {
  constexpr std::size_t widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(widths) ? widths[index] : 0;
}

enum class NcclOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

inline constexpr int kNcclUndefined = INT_MIN;
inline constexpr unsigned kNcclMagic = 0xcafebeef;
inline constexpr int kNcclNoColor = -1;
inline constexpr int kNcclShrinkDefault = 0, kNcclShrinkAbort = 1;
/// NCCL's version as a number: 22809 is 2.28.9.
constexpr int NcclVersion(int major, int minor, int patch) {
  return major * 10000 + minor * 100 + patch;
}

/// ncclConfig_t as it is in 2.28. `size` and `version` let an earlier library read its part and a
/// later one fill in the rest, so that one layout serves all.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = kNcclMagic;
  unsigned version = NcclVersion(2, 28, 0);
  int blocking = kNcclUndefined;
  int cga_cluster_size = kNcclUndefined;
  int min_ctas = kNcclUndefined;
  int max_ctas = kNcclUndefined;
  const char* net_name = nullptr;
  int split_share = kNcclUndefined;
  int traffic_class = kNcclUndefined;
  const char* comm_name = nullptr;
  int collnet_enable = kNcclUndefined;
  int cta_policy = kNcclUndefined;
  int shrink_share = kNcclUndefined;
  int nvls_ctas = kNcclUndefined;
  int channels_per_net_peer = kNcclUndefined;
  int nvlink_centric_sched = kNcclUndefined;
};

}  // namespace troupe::train

/// F(member, symbol, parameters): functions that every library from 2.26 on has, or that calls can
/// do without. All return NcclResult.
#define TROUPE_NCCL_REQUIRED(F)                                                                \
  F(get_version, ncclGetVersion, (int* version))                                               \
  F(get_unique_id, ncclGetUniqueId, (NcclUniqueId * id))                                       \
  F(init_rank, ncclCommInitRankConfig,                                                         \
    (NcclComm * comm, int size, NcclUniqueId id, int rank, NcclConfig* config))                \
  F(async_error, ncclCommGetAsyncError, (NcclComm comm, NcclResult * state))                   \
  F(finalize, ncclCommFinalize, (NcclComm comm))                                               \
  F(destroy, ncclCommDestroy, (NcclComm comm))                                                 \
  F(abort, ncclCommAbort, (NcclComm comm))                                                     \
  F(split, ncclCommSplit,                                                                      \
    (NcclComm comm, int color, int key, NcclComm* child, NcclConfig* config))                  \
  F(count, ncclCommCount, (NcclComm comm, int* size))                                          \
  F(user_rank, ncclCommUserRank, (NcclComm comm, int* rank))                                   \
  F(cuda_device, ncclCommCuDevice, (NcclComm comm, int* device))                               \
  F(group_start, ncclGroupStart, ())                                                           \
  F(group_end, ncclGroupEnd, ())                                                               \
  F(all_reduce, ncclAllReduce,                                                                 \
    (const void* send, void* recv, std::size_t count, NcclType type, NcclOp op, NcclComm comm, \
     CudaStream stream))                                                                       \
  F(broadcast, ncclBroadcast,                                                                  \
    (const void* send, void* recv, std::size_t count, NcclType type, int root, NcclComm comm,  \
     CudaStream stream))                                                                       \
  F(reduce, ncclReduce,                                                                        \
    (const void* send, void* recv, std::size_t count, NcclType type, NcclOp op, int root,      \
     NcclComm comm, CudaStream stream))                                                        \
  F(all_gather, ncclAllGather,                                                                 \
    (const void* send, void* recv, std::size_t count, NcclType type, NcclComm comm,            \
     CudaStream stream))                                                                       \
  F(reduce_scatter, ncclReduceScatter,                                                         \
    (const void* send, void* recv, std::size_t count, NcclType type, NcclOp op, NcclComm comm, \
     CudaStream stream))                                                                       \
  F(send, ncclSend,                                                                            \
    (const void* send, std::size_t count, NcclType type, int peer, NcclComm comm,              \
     CudaStream stream))                                                                       \
  F(recv, ncclRecv,                                                                            \
    (void* recv, std::size_t count, NcclType type, int peer, NcclComm comm, CudaStream stream))

/// F(member, symbol, parameters): functions that only some versions have; the table's pointer is
/// null without. 2.23: init_scalable. 2.27: shrink. 2.28: revoke, all_to_all. 2.29: grow.
#define TROUPE_NCCL_OPTIONAL(F)                                                                 \
  F(init_scalable, ncclCommInitRankScalable,                                                    \
    (NcclComm * comm, int size, int rank, int id_count, NcclUniqueId* ids, NcclConfig* config)) \
  F(shrink, ncclCommShrink,                                                                     \
    (NcclComm comm, int* excluded, int excluded_count, NcclComm* child, NcclConfig* config,     \
     int flags))                                                                                \
  F(revoke, ncclCommRevoke, (NcclComm comm, int flags))                                         \
  F(all_to_all, ncclAlltoAll,                                                                   \
    (const void* send, void* recv, std::size_t count, NcclType type, NcclComm comm,             \
     CudaStream stream))                                                                        \
  F(comm_unique_id, ncclCommGetUniqueId, (NcclComm comm, NcclUniqueId * id))                    \
  F(grow, ncclCommGrow,                                                                         \
    (NcclComm comm, int size, const NcclUniqueId* id, int rank, NcclComm* child,                \
     NcclConfig* config))

/// F(member, symbol, parameters): functions that return text.
#define TROUPE_NCCL_TEXTS(F)                               \
  F(error_string, ncclGetErrorString, (NcclResult result)) \
  F(last_error, ncclGetLastError, (NcclComm comm))
