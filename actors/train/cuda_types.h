// The parts of CUDA's driver API that this project uses, declared by itself: nothing of CUDA is
// needed to build, and the wheel runs where there is none. Pure declarations.
//
// The driver API and not the runtime's: libcuda.so.1 is on every machine with a GPU and its SONAME
// does not change with CUDA's version, while there is a libcudart for each; its streams, events and
// primary contexts are those that torch and NCCL use. tests/actors/train/abi_test.cc compares all
// this with NVIDIA's headers, where they are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::train {

struct CudaContextOpaque;
struct CudaStreamOpaque;
struct CudaEventOpaque;
struct CudaModuleOpaque;
struct CudaFunctionOpaque;
using CudaDevice = int;
using CudaContext = CudaContextOpaque*;
using CudaStream = CudaStreamOpaque*;  // nullptr: the default stream
using CudaEvent = CudaEventOpaque*;
using CudaModule = CudaModuleOpaque*;      // compiled code, of one context
using CudaFunction = CudaFunctionOpaque*;  // a kernel of it
using CudaPointer = std::uint64_t;         // CUdeviceptr: an address in device memory
using CudaHostFunction = void (*)(void*);

/// CUresult, as far as it is told apart here; every other number is an error as well.
enum class CudaResult : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kInvalidPtx = 218,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
};

inline constexpr unsigned kCudaStreamNonBlocking = 1;
inline constexpr unsigned kCudaEventDisableTiming = 2;

}  // namespace troupe::train

/// F(member, symbol, parameters): every function of libcuda.so.1 that is called. All return
/// CudaResult.
#define TROUPE_CUDA_FUNCTIONS(F)                                                                   \
  F(init, cuInit, (unsigned flags))                                                                \
  F(driver_version, cuDriverGetVersion, (int* version))                                            \
  F(device_count, cuDeviceGetCount, (int* count))                                                  \
  F(device_get, cuDeviceGet, (CudaDevice * device, int ordinal))                                   \
  F(device_bus_id, cuDeviceGetPCIBusId, (char* text, int size, CudaDevice device))                 \
  F(primary_retain, cuDevicePrimaryCtxRetain, (CudaContext * context, CudaDevice device))          \
  F(primary_release, cuDevicePrimaryCtxRelease_v2, (CudaDevice device))                            \
  F(set_current, cuCtxSetCurrent, (CudaContext context))                                           \
  F(get_current, cuCtxGetCurrent, (CudaContext * context))                                         \
  F(current_device, cuCtxGetDevice, (CudaDevice * device))                                         \
  F(mem_alloc, cuMemAlloc_v2, (CudaPointer * memory, std::size_t bytes))                           \
  F(mem_free, cuMemFree_v2, (CudaPointer memory))                                                  \
  F(host_alloc, cuMemHostAlloc, (void** memory, std::size_t bytes, unsigned flags))                \
  F(host_free, cuMemFreeHost, (void* memory))                                                      \
  F(copy, cuMemcpyAsync, (CudaPointer to, CudaPointer from, std::size_t bytes, CudaStream stream)) \
  F(copy_to_device, cuMemcpyHtoDAsync_v2,                                                          \
    (CudaPointer to, const void* from, std::size_t bytes, CudaStream stream))                      \
  F(copy_to_host, cuMemcpyDtoHAsync_v2,                                                            \
    (void* to, CudaPointer from, std::size_t bytes, CudaStream stream))                            \
  F(stream_create, cuStreamCreate, (CudaStream * stream, unsigned flags))                          \
  F(stream_destroy, cuStreamDestroy_v2, (CudaStream stream))                                       \
  F(stream_query, cuStreamQuery, (CudaStream stream))                                              \
  F(stream_synchronize, cuStreamSynchronize, (CudaStream stream))                                  \
  F(stream_wait, cuStreamWaitEvent, (CudaStream stream, CudaEvent event, unsigned flags))          \
  F(launch_host, cuLaunchHostFunc, (CudaStream stream, CudaHostFunction function, void* argument)) \
  F(module_load, cuModuleLoadData, (CudaModule * module, const void* image))                       \
  F(module_function, cuModuleGetFunction,                                                          \
    (CudaFunction * function, CudaModule module, const char* name))                                \
  F(launch_kernel, cuLaunchKernel,                                                                 \
    (CudaFunction function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,               \
     unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared_bytes,            \
     CudaStream stream, void** parameters, void** extra))                                          \
  F(event_create, cuEventCreate, (CudaEvent * event, unsigned flags))                              \
  F(event_destroy, cuEventDestroy_v2, (CudaEvent event))                                           \
  F(event_record, cuEventRecord, (CudaEvent event, CudaStream stream))                             \
  F(event_query, cuEventQuery, (CudaEvent event))                                                  \
  F(event_synchronize, cuEventSynchronize, (CudaEvent event))                                      \
  F(error_name, cuGetErrorName, (CudaResult result, const char** text))                            \
  F(error_string, cuGetErrorString, (CudaResult result, const char** text))
