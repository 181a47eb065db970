#include "tests/actors/train/gpu_ranks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace troupe::train {

std::vector<std::string> LibrariesToTest() {
  if (std::getenv("TROUPE_NCCL_LIB")) return {kReal};
  return {"2.26", "2.28", "2.30"};
}

std::string NameOfLibrary(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

std::string NcclFile(const std::string& library) {
  if (library == kReal) return std::getenv("TROUPE_NCCL_LIB");
  return std::string(TROUPE_FAKES) + "/nccl-" + library + "/libnccl.so.2";
}

std::string CudaFile(const std::string& library) {
  return library == kReal ? "" : std::string(TROUPE_FAKES) + "/cuda/libcuda.so.1";
}

int RanksFor(const std::string& library) {
  if (library != kReal) return 4;
  // Runs in a process of its own: the ranks are forked from this one, which must have no CUDA.
  const auto ends = RunRanks(1, {}, [&](Rank& rank) {
    const auto cuda = CudaApi::Load();
    const auto nccl = NcclApi::Load();
    const char* shared = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    const bool two = nccl.ok() && (*nccl)->features().multi_rank && shared && *shared == '1';
    _exit(cuda.ok() && nccl.ok() ? (*cuda)->device_count() * (two ? 2 : 1) : 0);
  });
  return std::min(ends[0].exit_code, 4);
}

Gpu::Gpu(Rank& rank, const std::string& library) : rank_(rank) {
  cuda_ = rank.Take(CudaApi::Load(CudaFile(library)));
  nccl_ = rank.Take(NcclApi::Load(NcclFile(library)));
  device_ = rank.index() % cuda_->device_count();
  scope_ = std::make_unique<CudaScope>(*cuda_, device_);
  rank.Require(scope_->status().ok(), MessageOf(scope_->status()));
  Check(cuda_->call.stream_create(&stream_, kCudaStreamNonBlocking), "making a stream");
}

void Gpu::Check(CudaResult result, const char* doing) const {
  rank_.Require(result == CudaResult::kSuccess, MessageOf(cuda_->Check(result, doing)));
}

void Gpu::Check(NcclResult result, const char* doing) const {
  rank_.Require(result == NcclResult::kSuccess || result == NcclResult::kInProgress,
                MessageOf(nccl_->Check(result, doing)));
}

NcclUniqueId Gpu::ShareId(const std::string& mark, int slot) {
  auto& id = rank_.board().ids[slot];
  if (rank_.index() == 0) {
    Check(nccl_->call.get_unique_id(&id), "making an id");
    rank_.board().Add(mark);
  }
  rank_.Await(mark, 1);
  return id;
}

NcclComm Gpu::Form(const std::string& mark) {
  const auto id = ShareId(mark);
  NcclConfig config;
  config.blocking = 0;
  NcclComm comm = nullptr;
  Check(nccl_->call.init_rank(&comm, rank_.size(), id, rank_.index(), &config), "forming");
  Check(Settle(comm), "forming");
  return comm;
}

NcclResult Gpu::Settle(NcclComm comm) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(kSecondsMax);
  for (;;) {
    NcclResult state = NcclResult::kInternalError;
    Check(nccl_->call.async_error(comm, &state), "asking for the state");
    if (state != NcclResult::kInProgress) return state;
    rank_.Require(std::chrono::steady_clock::now() < until,
                  "a communicator was in progress for " + std::to_string(kSecondsMax) + " s");
    std::this_thread::yield();
  }
}

NcclResult Gpu::Settled(NcclResult result, NcclComm comm) const {
  return result == NcclResult::kInProgress ? Settle(comm) : result;
}

CudaPointer Gpu::Allocate(std::size_t bytes) const {
  CudaPointer memory = 0;
  Check(cuda_->call.mem_alloc(&memory, bytes), "allocating device memory");
  return memory;
}

}  // namespace troupe::train
