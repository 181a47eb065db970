// The tables of functions: which copy of a library is taken, what is said where there is none, and
// that a result becomes an error with NCCL's own words.
#include "actors/train/nccl_api.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/actors/train/gpu_ranks.h"

namespace troupe::train {
namespace {

std::string Fake(const std::string& version) { return NcclFile(version); }

TEST(NcclApi, TheCopyThatTheProcessHasWins) {
  ExpectSuccess(RunRanks(1, {}, [](Rank& rank) {
    unsetenv("TROUPE_NCCL_LIB");
    rank.Require(dlopen(Fake("2.30").c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr, "the first copy");
    const auto api = rank.Take(NcclApi::Load());
    rank.Require(api->version() == 23007, "not the copy that was there: " + api->path());
    rank.Require(api->path().find("nccl-2.30") != std::string::npos, api->path());
  }));
}

TEST(NcclApi, AFileThatIsAskedForGoesFirst) {
  ExpectSuccess(RunRanks(1, {{0, {{"TROUPE_NCCL_LIB", Fake("2.26")}}}}, [](Rank& rank) {
    rank.Require(rank.Take(NcclApi::Load())->version() == 22605, "the variable's");
    rank.Require(rank.Take(NcclApi::Load(Fake("2.28")))->version() == 22809, "the argument's");
  }));
}

TEST(NcclApi, WhatIsMissingIsNamedWithWhatToDo) {
  ExpectSuccess(RunRanks(1, {}, [](Rank& rank) {
    const auto nccl = NcclApi::Load("/nowhere/libnccl.so.2");
    rank.Require(ErrorCodeOf(nccl.status()) == ErrorCode::kNotFound, "code");
    const auto text = MessageOf(nccl.status());
    for (const char* part : {"/nowhere/libnccl.so.2", "TROUPE_NCCL_LIB", "import torch"})
      rank.Require(text.find(part) != std::string::npos, text);
    const auto cuda = CudaApi::Load("/nowhere/libcuda.so.1");
    rank.Require(MessageOf(cuda.status()).find("NVIDIA's driver") != std::string::npos,
                 MessageOf(cuda.status()));
  }));
}

TEST(NcclApi, ALibraryThatIsNoNcclIsNamedWithWhatItLacks) {
  ExpectSuccess(RunRanks(1, {}, [](Rank& rank) {
    const auto text = MessageOf(NcclApi::Load(CudaFile("2.28")).status());
    rank.Require(text.find("has no ncclGetVersion") != std::string::npos, text);
  }));
}

TEST(NcclApi, AMachineWithoutAGpuSaysSo) {
  ExpectSuccess(RunRanks(1, {{0, {{"FAKE_CUDA_DEVICES", "0"}}}}, [](Rank& rank) {
    const auto text = MessageOf(CudaApi::Load(CudaFile("2.28")).status());
    rank.Require(text.find("CUDA_ERROR_NO_DEVICE") != std::string::npos, text);
    rank.Require(text.find("nvidia-smi") != std::string::npos, text);
  }));
}

TEST(NcclApi, ErrorsHaveNcclsWordsAndItsLastError) {
  ExpectSuccess(RunRanks(1, {}, [](Rank& rank) {
    Gpu gpu(rank, "2.28");
    NcclComm comm = nullptr;
    const auto result = gpu.nccl().call.init_rank(&comm, 2, {}, 5, nullptr);
    const auto status = gpu.nccl().Check(result, "forming group g");
    rank.Require(ErrorCodeOf(status) == ErrorCode::kInvalid, "code");
    const auto text = MessageOf(status);
    for (const char* part : {"forming group g", "NCCL 2.28.9", "invalid argument", "5/2"})
      rank.Require(text.find(part) != std::string::npos, text);
  }));
}

TEST(CudaApi, TheDeviceBeforeAScopeIsCurrentAfterIt) {
  ExpectSuccess(RunRanks(1, {}, [](Rank& rank) {
    const auto cuda = rank.Take(CudaApi::Load(CudaFile("2.28")));
    CudaDevice device = -1;
    {
      CudaScope outer(*cuda, 3);
      {
        CudaScope inner(*cuda, 5);
        cuda->call.current_device(&device);
        rank.Require(device == 5, "inner");
      }
      cuda->call.current_device(&device);
      rank.Require(device == 3, "outer");
    }
    rank.Require(cuda->call.current_device(&device) == CudaResult::kInvalidContext, "none");
    rank.Require(
        MessageOf(CudaScope(*cuda, 8).status()).find("this process sees 8") != std::string::npos,
        "a device that is not there");
  }));
}

}  // namespace
}  // namespace troupe::train
