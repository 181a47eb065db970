// A rank of a test with a GPU, or a fake one: the libraries, a device, a stream, buffers; and which
// NCCL the suite runs against.
//
// The fakes of this build by version, or with TROUPE_NCCL_LIB the real library of that file, on the
// GPUs that are there.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "actors/train/cuda_api.h"
#include "actors/train/nccl_api.h"
#include "tests/actors/train/ranks.h"

namespace troupe::train {

inline constexpr const char* kReal = "real";

/// "2.26", "2.28", "2.30", or only "real".
std::vector<std::string> LibrariesToTest();
/// A test's name with the library in it, for INSTANTIATE_TEST_SUITE_P.
std::string NameOfLibrary(const testing::TestParamInfo<std::string>& info);
/// The file of one of them, for the environment of a rank.
std::string NcclFile(const std::string& library);
std::string CudaFile(const std::string& library);
/// How many ranks a test may have: 4, or as many as the GPUs take; 0 where there is none.
int RanksFor(const std::string& library);

/// A rank's GPU. Errors end the process.
class Gpu {
 public:
  Gpu(Rank& rank, const std::string& library);

  const CudaApi& cuda() const { return *cuda_; }
  const NcclApi& nccl() const { return *nccl_; }
  CudaStream stream() const { return stream_; }
  int device() const { return device_; }

  void Check(CudaResult result, const char* doing) const;
  void Check(NcclResult result, const char* doing) const;
  /// Makes the id `slot` of the board on rank 0, and gives it to all.
  NcclUniqueId ShareId(const std::string& mark, int slot = 0);
  /// A communicator of all ranks, not blocking, ready.
  NcclComm Form(const std::string& mark);
  /// Asks until it is no longer in progress, a minute at most; the state then.
  NcclResult Settle(NcclComm comm) const;
  /// The result of a call, or where that is in progress the communicator's.
  NcclResult Settled(NcclResult result, NcclComm comm) const;

  CudaPointer Allocate(std::size_t bytes) const;
  template <class T>
  CudaPointer ToDevice(const std::vector<T>& values) const {
    const CudaPointer at = Allocate(values.size() * sizeof(T));
    Check(cuda_->call.copy_to_device(at, values.data(), values.size() * sizeof(T), stream_),
          "copy");
    Check(cuda_->call.stream_synchronize(stream_), "waiting for the copy");  // `values` may go
    return at;
  }
  template <class T>
  std::vector<T> ToHost(CudaPointer from, std::size_t count) const {
    std::vector<T> values(count);
    Check(cuda_->call.copy_to_host(values.data(), from, count * sizeof(T), stream_), "copy");
    Check(cuda_->call.stream_synchronize(stream_), "waiting for the stream");
    return values;
  }
  static void* At(CudaPointer memory) { return reinterpret_cast<void*>(memory); }

 private:
  Rank& rank_;
  std::unique_ptr<const CudaApi> cuda_;
  std::unique_ptr<const NcclApi> nccl_;
  std::unique_ptr<CudaScope> scope_;
  CudaStream stream_ = nullptr;
  int device_ = 0;
};

}  // namespace troupe::train
