#include "actors/train/device_digest.h"

#include <algorithm>
#include <cstring>

#include "actors/train/device_digest_ptx.h"

namespace troupe::train {
namespace {

constexpr std::size_t kWordBytes = 4;
constexpr unsigned kThreads = 256;
// Enough to keep the largest GPUs busy with reading; each thread ends with one addition in memory.
constexpr std::size_t kBlocksMax = 1024;

/// As in device_digest.cu.
std::uint64_t Mixed(std::int32_t word, std::uint64_t place) {
  auto x = static_cast<std::uint64_t>(static_cast<std::int64_t>(word));
  x += place * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

unsigned BlocksFor(std::size_t bytes) {
  const std::size_t words = bytes / kWordBytes + 1;
  return static_cast<unsigned>(std::min((words + kThreads - 1) / kThreads, kBlocksMax));
}

}  // namespace

std::uint64_t HostDigest(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t sum = 0, place = 0;
  for (; bytes > 0; ++place) {
    std::int32_t word = 0;
    const std::size_t part = std::min(bytes, kWordBytes);
    std::memcpy(&word, at, part);
    sum += Mixed(word, place + 1);
    at += part;
    bytes -= part;
  }
  return sum;
}

Status DeviceDigest::AddTo(CudaPointer sum, CudaPointer data, std::size_t bytes, int device,
                           CudaStream stream) {
  if (data % kWordBytes != 0 || sum % sizeof(std::uint64_t) != 0)
    return MakeError(ErrorCode::kInvalid,
                     "a digest is of memory at a multiple of 4 bytes, into one at a multiple of 8");
  const CudaScope scope(cuda_, device);
  TROUPE_TRY(scope.status());
  TROUPE_ASSIGN(const CudaFunction kernel, KernelOf(device));
  std::uint64_t size = bytes;
  void* parameters[] = {&data, &size, &sum};
  return cuda_.Check(cuda_.call.launch_kernel(kernel, BlocksFor(bytes), 1, 1, kThreads, 1, 1, 0,
                                              stream, parameters, nullptr),
                     "starting the digest's kernel");
}

StatusOr<CudaFunction> DeviceDigest::KernelOf(int device) {
  MutexLock lock(mutex_);
  CudaFunction& kernel = kernels_[device];
  if (!kernel) {
    CudaModule module = nullptr;  // lives as long as the device's context, which is kept
    TROUPE_TRY(cuda_.Check(cuda_.call.module_load(&module, kDeviceDigestPtx),
                           "compiling the digest's kernel"));
    TROUPE_TRY(cuda_.Check(cuda_.call.module_function(&kernel, module, "troupe_digest"),
                           "looking for the digest's kernel"));
  }
  return kernel;
}

}  // namespace troupe::train
