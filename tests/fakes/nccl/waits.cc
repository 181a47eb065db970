#include "tests/fakes/nccl/waits.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "tests/fakes/nccl/settings.h"

// The fake CUDA's, or whichever libcuda.so.1 the process has.
extern "C" {
troupe::train::CudaResult cuCtxGetDevice(troupe::train::CudaDevice* device);
troupe::train::CudaResult cuLaunchHostFunc(troupe::train::CudaStream stream,
                                           troupe::train::CudaHostFunction function,
                                           void* argument);
}

namespace troupe::fakes {
namespace {

void RunWork(void* argument) {
  const std::unique_ptr<std::function<void()>> work(static_cast<std::function<void()>*>(argument));
  (*work)();
}

}  // namespace

void WaitStop(ncclComm* comm) {
  std::unique_lock lock(comm->mutex);
  comm->changed.wait(lock, [comm] { return comm->stop.load(); });
}

void WaitMilliseconds(ncclComm* comm, int milliseconds) {
  std::unique_lock lock(comm->mutex);
  comm->changed.wait_for(lock, std::chrono::milliseconds(milliseconds),
                         [comm] { return comm->stop.load(); });
}

void SpendMilliseconds(int milliseconds) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, std::chrono::milliseconds(milliseconds), [] { return false; });
}

void Stick() {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  for (;;) never.wait(lock);
}

int CurrentDevice() {
  train::CudaDevice device = -1;
  return cuCtxGetDevice(&device) == train::CudaResult::kSuccess ? device : -1;
}

void OntoStream(train::CudaStream stream, std::function<void()> work) {
  auto* argument = new std::function<void()>(std::move(work));
  const auto result = cuLaunchHostFunc(stream, RunWork, argument);
  if (result != train::CudaResult::kSuccess)
    FatalViolation("N0 the stream takes work", "cuLaunchHostFunc was refused");
}

}  // namespace troupe::fakes
