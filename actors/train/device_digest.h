// 64 bits of what device memory holds, computed where it is: equal for equal bytes, on a GPU of any
// kind and on the host. So a transfer is verified, and replicas are compared, without a copy.
//
//   DeviceDigest digest(*cuda);
//   TROUPE_TRY(digest.AddTo(sum, data, bytes, 0, stream));  // on device 0; 64 bits at sum
//
// Words of 32 bits are mixed with their places and summed: the order of summation does not matter,
// and words that have changed places do. It finds faults, not forgeries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "actors/train/cuda_api.h"

namespace troupe::train {

/// The kernel on the devices of this process. Thread-safe.
class DeviceDigest {
 public:
  /// `cuda` must outlive it.
  explicit DeviceDigest(const CudaApi& cuda) : cuda_(cuda) {}

  /// Adds the digest of `bytes` bytes at `data` to the 64 bits at `sum`, both in memory of
  /// `device`, after what is in `stream` already. Does not wait for it; the first time on a device
  /// the driver compiles the kernel. kInvalid: `data` is no multiple of four, or `sum` of eight.
  Status AddTo(CudaPointer sum, CudaPointer data, std::size_t bytes, int device, CudaStream stream);

 private:
  /// In the device's context, which is the thread's current one.
  StatusOr<CudaFunction> KernelOf(int device);

  const CudaApi& cuda_;
  Mutex mutex_;
  std::map<int, CudaFunction> kernels_ ABSL_GUARDED_BY(mutex_);
};

/// The digest of host memory, at any address.
std::uint64_t HostDigest(const void* data, std::size_t bytes);

}  // namespace troupe::train
