// This project's own declarations of NCCL and CUDA equal those of NVIDIA's headers: compiled only
// where those are found (torch's CUDA wheels bring them).
#include <cuda.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <type_traits>

#include "actors/train/cuda_api.h"
#include "actors/train/nccl_api.h"

namespace troupe::train {
namespace {

/// Alike in a call: both are pointers, or have the size, and are both integers or enums.
template <class A, class B>
constexpr bool PassedAlike() {
  if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>)
    return std::is_pointer_v<A> == std::is_pointer_v<B>;
  else
    return sizeof(A) == sizeof(B) && std::is_class_v<A> == std::is_class_v<B>;
}

template <class Ours, class Theirs>
struct SameAbi : std::false_type {};
template <class R1, class... A1, class R2, class... A2>
  requires(sizeof...(A1) == sizeof...(A2))
struct SameAbi<R1 (*)(A1...), R2 (*)(A2...)>
    : std::bool_constant<PassedAlike<R1, R2>() && (PassedAlike<A1, A2>() && ...)> {};

#define TROUPE_SAME(member, symbol, parameters)                                             \
  static_assert(SameAbi<decltype(std::declval<Functions>().member), decltype(&::symbol)>(), \
                #symbol " is declared differently");

namespace nccl {
using Functions = NcclFunctions;
TROUPE_NCCL_REQUIRED(TROUPE_SAME)
TROUPE_NCCL_TEXTS(TROUPE_SAME)
TROUPE_SAME(init_scalable, ncclCommInitRankScalable, ())
#if NCCL_VERSION_CODE >= 22809
TROUPE_SAME(shrink, ncclCommShrink, ())
TROUPE_SAME(revoke, ncclCommRevoke, ())
TROUPE_SAME(all_to_all, ncclAlltoAll, ())
#endif
#if NCCL_VERSION_CODE >= 22902
TROUPE_SAME(comm_unique_id, ncclCommGetUniqueId, ())
TROUPE_SAME(grow, ncclCommGrow, ())
#endif
}  // namespace nccl

namespace cuda {
using Functions = CudaFunctions;
TROUPE_CUDA_FUNCTIONS(TROUPE_SAME)
}  // namespace cuda

#define TROUPE_SAME_OFFSET(ours, theirs) \
  static_assert(offsetof(NcclConfig, ours) == offsetof(ncclConfig_t, theirs))
TROUPE_SAME_OFFSET(magic, magic);
TROUPE_SAME_OFFSET(version, version);
TROUPE_SAME_OFFSET(blocking, blocking);
TROUPE_SAME_OFFSET(net_name, netName);
TROUPE_SAME_OFFSET(traffic_class, trafficClass);
TROUPE_SAME_OFFSET(comm_name, commName);
TROUPE_SAME_OFFSET(nvlink_centric_sched, nvlinkCentricSched);
static_assert(sizeof(NcclConfig) <= sizeof(ncclConfig_t));
static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));

TEST(Abi, NumbersAreThoseOfTheHeaders) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const NcclConfig ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_EQ(NcclVersion(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_VERSION_CODE);
  EXPECT_EQ(static_cast<int>(NcclResult::kInProgress), ncclInProgress);
  EXPECT_EQ(static_cast<int>(NcclResult::kRemoteError), ncclRemoteError);
  EXPECT_EQ(static_cast<int>(NcclType::kBfloat16), ncclBfloat16);
  EXPECT_EQ(static_cast<int>(NcclType::kFloat8e5m2), ncclFloat8e5m2);
  EXPECT_EQ(static_cast<int>(NcclOp::kAvg), ncclAvg);
  EXPECT_EQ(kNcclNoColor, NCCL_SPLIT_NOCOLOR);
  EXPECT_EQ(kNcclShrinkAbort, NCCL_SHRINK_ABORT);
  EXPECT_EQ(static_cast<int>(CudaResult::kNotReady), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(static_cast<int>(CudaResult::kInvalidContext), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(static_cast<int>(CudaResult::kNoDevice), CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(kCudaStreamNonBlocking, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(kCudaEventDisableTiming, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING));
}

TEST(Abi, TheLibraryBesideTheHeadersIsLoadedWithItsFeatures) {
  const auto api = NcclApi::Load(TROUPE_NCCL_WHEEL);
  if (!api.ok()) GTEST_SKIP() << MessageOf(api.status());
  EXPECT_EQ((*api)->version(), NCCL_VERSION_CODE);
  EXPECT_EQ((*api)->features().revoke, NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 7));
  EXPECT_EQ((*api)->features().shrink, NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3));
  EXPECT_EQ((*api)->features().grow, NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2));
  EXPECT_TRUE((*api)->features().scalable);
  NcclComm comm = nullptr;
  const auto status = (*api)->Check((*api)->call.init_rank(&comm, 2, {}, 5, nullptr), "forming");
  EXPECT_FALSE(status.ok()) << "rank 5 of 2, and mostly no GPU";
  EXPECT_NE(MessageOf(status).find("forming: NCCL " + VersionText((*api)->version())),
            std::string::npos)
      << MessageOf(status);
}

}  // namespace
}  // namespace troupe::train
