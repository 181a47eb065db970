// CUDA's driver API on host memory, as libcuda.so.1: a stream is a thread with a queue, an event a
// mark in it. README.md has what is modelled.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "actors/train/cuda_types.h"
#include "tests/fakes/cuda/fake_kernel.h"
#include "tests/fakes/cuda/fake_stream.h"

using namespace troupe::train;
using troupe::fakes::FakeEvent;
using troupe::fakes::FakeKernel;
using troupe::fakes::FakeStream;

// A context is its device's number and nothing else.
struct troupe::train::CudaContextOpaque {
  int device;
};
struct troupe::train::CudaModuleOpaque {
  CudaContext context;
  std::string ptx;
};
struct troupe::train::CudaFunctionOpaque {
  CudaContext context;
  std::unique_ptr<const FakeKernel> kernel;
};

namespace {

constexpr int kDevicesMax = 64;

struct FakeDriver {
  std::mutex mutex;
  pid_t initialized_by = 0;  // pid, as an initialisation before a fork does not hold in the child
  int devices = 0;
  CudaContextOpaque contexts[kDevicesMax];
  std::unordered_set<const void*> allocations;
};

FakeDriver& Driver() {
  static FakeDriver* const driver = new FakeDriver;  // streams may outlive the exit's destructors
  return *driver;
}

thread_local CudaContext current = nullptr;

bool Ready() { return Driver().initialized_by == getpid(); }
/// Common beginning of every call that needs a device.
CudaResult Usable() {
  if (!Ready()) return CudaResult::kNotInitialized;
  return current ? CudaResult::kSuccess : CudaResult::kInvalidContext;
}
FakeStream& Of(CudaStream stream) {
  static FakeStream* const none = new FakeStream;
  return stream ? *reinterpret_cast<FakeStream*>(stream) : *none;
}
FakeEvent& Of(CudaEvent event) { return *reinterpret_cast<FakeEvent*>(event); }
void* Address(CudaPointer memory) { return reinterpret_cast<void*>(memory); }

CudaResult Allocate(void** memory, std::size_t bytes) {
  if (bytes == 0) return CudaResult::kInvalidValue;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*memory) return CudaResult::kOutOfMemory;
  std::lock_guard lock(Driver().mutex);
  Driver().allocations.insert(*memory);
  return CudaResult::kSuccess;
}

CudaResult Free(void* memory) {
  if (!memory) return CudaResult::kSuccess;
  {
    std::lock_guard lock(Driver().mutex);
    if (Driver().allocations.erase(memory) == 0) return CudaResult::kInvalidValue;
  }
  std::free(memory);
  return CudaResult::kSuccess;
}

CudaResult Copy(void* to, const void* from, std::size_t bytes, CudaStream stream) {
  if (const auto usable = Usable(); usable != CudaResult::kSuccess) return usable;
  if (bytes == 0) return CudaResult::kSuccess;  // at any address
  Of(stream).Put([=] { std::memmove(to, from, bytes); });
  return CudaResult::kSuccess;
}

const char* NameOf(CudaResult result) {
  switch (result) {
    case CudaResult::kSuccess:
      return "CUDA_SUCCESS";
    case CudaResult::kInvalidValue:
      return "CUDA_ERROR_INVALID_VALUE";
    case CudaResult::kOutOfMemory:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case CudaResult::kNotInitialized:
      return "CUDA_ERROR_NOT_INITIALIZED";
    case CudaResult::kNoDevice:
      return "CUDA_ERROR_NO_DEVICE";
    case CudaResult::kInvalidDevice:
      return "CUDA_ERROR_INVALID_DEVICE";
    case CudaResult::kInvalidContext:
      return "CUDA_ERROR_INVALID_CONTEXT";
    case CudaResult::kInvalidPtx:
      return "CUDA_ERROR_INVALID_PTX";
    case CudaResult::kNotFound:
      return "CUDA_ERROR_NOT_FOUND";
    case CudaResult::kInvalidHandle:
      return "CUDA_ERROR_INVALID_HANDLE";
    case CudaResult::kNotReady:
      return "CUDA_ERROR_NOT_READY";
  }
  return nullptr;
}

}  // namespace

extern "C" {

CudaResult cuInit(unsigned flags) {
  if (flags != 0) return CudaResult::kInvalidValue;
  auto& driver = Driver();
  std::lock_guard lock(driver.mutex);
  const char* devices = std::getenv("FAKE_CUDA_DEVICES");
  driver.devices = devices ? std::atoi(devices) : 8;
  if (driver.devices <= 0 || driver.devices > kDevicesMax) return CudaResult::kNoDevice;
  for (int device = 0; device < kDevicesMax; ++device) driver.contexts[device].device = device;
  if (driver.initialized_by != 0 && driver.initialized_by != getpid())
    return CudaResult::kNotInitialized;
  driver.initialized_by = getpid();
  return CudaResult::kSuccess;
}
CudaResult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CudaResult::kSuccess;
}
CudaResult cuDeviceGetCount(int* count) {
  if (!Ready()) return CudaResult::kNotInitialized;
  *count = Driver().devices;
  return CudaResult::kSuccess;
}
CudaResult cuDeviceGet(CudaDevice* device, int ordinal) {
  if (!Ready()) return CudaResult::kNotInitialized;
  if (ordinal < 0 || ordinal >= Driver().devices) return CudaResult::kInvalidDevice;
  *device = ordinal;
  return CudaResult::kSuccess;
}
CudaResult cuDeviceGetPCIBusId(char* text, int size, CudaDevice device) {
  if (!Ready()) return CudaResult::kNotInitialized;
  if (device < 0 || device >= Driver().devices) return CudaResult::kInvalidDevice;
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", device + 1);
  return CudaResult::kSuccess;
}
CudaResult cuDevicePrimaryCtxRetain(CudaContext* context, CudaDevice device) {
  if (!Ready()) return CudaResult::kNotInitialized;
  if (device < 0 || device >= Driver().devices) return CudaResult::kInvalidDevice;
  *context = &Driver().contexts[device];
  return CudaResult::kSuccess;
}
CudaResult cuDevicePrimaryCtxRelease_v2(CudaDevice device) {
  return Ready() ? CudaResult::kSuccess : CudaResult::kNotInitialized;
}
CudaResult cuCtxSetCurrent(CudaContext context) {
  if (!Ready()) return CudaResult::kNotInitialized;
  current = context;
  return CudaResult::kSuccess;
}
CudaResult cuCtxGetCurrent(CudaContext* context) {
  *context = current;
  return Ready() ? CudaResult::kSuccess : CudaResult::kNotInitialized;
}
CudaResult cuCtxGetDevice(CudaDevice* device) {
  if (const auto usable = Usable(); usable != CudaResult::kSuccess) return usable;
  *device = current->device;
  return CudaResult::kSuccess;
}

CudaResult cuMemAlloc_v2(CudaPointer* memory, std::size_t bytes) {
  if (const auto usable = Usable(); usable != CudaResult::kSuccess) return usable;
  void* at = nullptr;
  const auto result = Allocate(&at, bytes);
  *memory = reinterpret_cast<CudaPointer>(at);
  return result;
}
CudaResult cuMemFree_v2(CudaPointer memory) {
  const auto usable = Usable();
  return usable == CudaResult::kSuccess ? Free(Address(memory)) : usable;
}
CudaResult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  const auto usable = Usable();
  return usable == CudaResult::kSuccess ? Allocate(memory, bytes) : usable;
}
CudaResult cuMemFreeHost(void* memory) {
  const auto usable = Usable();
  return usable == CudaResult::kSuccess ? Free(memory) : usable;
}
CudaResult cuMemcpyAsync(CudaPointer to, CudaPointer from, std::size_t bytes, CudaStream stream) {
  return Copy(Address(to), Address(from), bytes, stream);
}
CudaResult cuMemcpyHtoDAsync_v2(CudaPointer to, const void* from, std::size_t bytes,
                                CudaStream stream) {
  return Copy(Address(to), from, bytes, stream);
}
CudaResult cuMemcpyDtoHAsync_v2(void* to, CudaPointer from, std::size_t bytes, CudaStream stream) {
  return Copy(to, Address(from), bytes, stream);
}

CudaResult cuStreamCreate(CudaStream* stream, unsigned flags) {
  if (const auto usable = Usable(); usable != CudaResult::kSuccess) return usable;
  *stream = reinterpret_cast<CudaStream>(new FakeStream);
  return CudaResult::kSuccess;
}
CudaResult cuStreamDestroy_v2(CudaStream stream) {
  if (!stream) return CudaResult::kInvalidHandle;
  delete &Of(stream);
  return CudaResult::kSuccess;
}
CudaResult cuStreamQuery(CudaStream stream) {
  return Of(stream).Idle() ? CudaResult::kSuccess : CudaResult::kNotReady;
}
CudaResult cuStreamSynchronize(CudaStream stream) {
  Of(stream).WaitIdle();
  return CudaResult::kSuccess;
}
CudaResult cuStreamWaitEvent(CudaStream stream, CudaEvent event, unsigned flags) {
  Of(stream).Put([mark = Of(event).Latest()] { mark.Wait(); });
  return CudaResult::kSuccess;
}
CudaResult cuLaunchHostFunc(CudaStream stream, CudaHostFunction function, void* argument) {
  if (!Ready()) return CudaResult::kNotInitialized;
  Of(stream).Put([=] { function(argument); });
  return CudaResult::kSuccess;
}

// Modules live as long as the process, as those of a context that is kept.
CudaResult cuModuleLoadData(CudaModule* module, const void* image) {
  if (const auto usable = Usable(); usable != CudaResult::kSuccess) return usable;
  const std::string ptx(static_cast<const char*>(image));
  if (!ptx.starts_with(".version ")) return CudaResult::kInvalidPtx;
  *module = new CudaModuleOpaque{current, ptx};
  return CudaResult::kSuccess;
}
CudaResult cuModuleGetFunction(CudaFunction* function, CudaModule module, const char* name) {
  if (const auto usable = Usable(); usable != CudaResult::kSuccess) return usable;
  if (module->ptx.find(std::string(".entry ") + name + "(") == std::string::npos)
    return CudaResult::kNotFound;
  auto kernel = FakeKernel::Parse(module->ptx, name);
  if (!kernel) return CudaResult::kInvalidPtx;
  *function = new CudaFunctionOpaque{module->context, std::move(kernel)};
  return CudaResult::kSuccess;
}
CudaResult cuLaunchKernel(CudaFunction function, unsigned blocks_x, unsigned blocks_y,
                          unsigned blocks_z, unsigned threads_x, unsigned threads_y,
                          unsigned threads_z, unsigned shared_bytes, CudaStream stream,
                          void** parameters, void** extra) {
  if (const auto usable = Usable(); usable != CudaResult::kSuccess) return usable;
  if (function->context != current) return CudaResult::kInvalidHandle;
  const bool one_dimension = blocks_y == 1 && blocks_z == 1 && threads_y == 1 && threads_z == 1;
  if (!one_dimension || blocks_x == 0 || threads_x == 0 || threads_x > 1024 || shared_bytes != 0 ||
      extra)
    return CudaResult::kInvalidValue;
  std::vector<std::uint64_t> given;  // copied before the call returns, as CUDA does
  for (std::size_t each = 0; each < function->kernel->parameters(); ++each)
    given.push_back(*static_cast<const std::uint64_t*>(parameters[each]));
  Of(stream).Put([=, kernel = function->kernel.get()] { kernel->Run(blocks_x, threads_x, given); });
  return CudaResult::kSuccess;
}

CudaResult cuEventCreate(CudaEvent* event, unsigned flags) {
  if (const auto usable = Usable(); usable != CudaResult::kSuccess) return usable;
  *event = reinterpret_cast<CudaEvent>(new FakeEvent);
  return CudaResult::kSuccess;
}
CudaResult cuEventDestroy_v2(CudaEvent event) {
  if (!event) return CudaResult::kInvalidHandle;
  delete &Of(event);
  return CudaResult::kSuccess;
}
CudaResult cuEventRecord(CudaEvent event, CudaStream stream) {
  Of(stream).Put([mark = Of(event).Next()] { mark.Pass(); });
  return CudaResult::kSuccess;
}
CudaResult cuEventQuery(CudaEvent event) {
  const char* kernel_error = std::getenv("FAKE_CUDA_KERNEL_ERROR");
  if (kernel_error) return static_cast<CudaResult>(std::atoi(kernel_error));
  return Of(event).Latest().Passed() ? CudaResult::kSuccess : CudaResult::kNotReady;
}
CudaResult cuEventSynchronize(CudaEvent event) {
  Of(event).Latest().Wait();
  return CudaResult::kSuccess;
}

CudaResult cuGetErrorName(CudaResult result, const char** text) {
  *text = NameOf(result);
  return *text ? CudaResult::kSuccess : CudaResult::kInvalidValue;
}
CudaResult cuGetErrorString(CudaResult result, const char** text) {
  return cuGetErrorName(result, text);
}

}  // extern "C"
