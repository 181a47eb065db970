// Waits of the fake NCCL that end with the communicator's stop, and the calls of the fake CUDA.
#pragma once

#include <functional>

#include "actors/train/cuda_types.h"
#include "tests/fakes/nccl/comm.h"

namespace troupe::fakes {

/// Blocks until the communicator is revoked or aborted: a kernel that spins on the abort flag.
void WaitStop(ncclComm* comm);
/// Blocks so long, or until the communicator is revoked or aborted.
void WaitMilliseconds(ncclComm* comm, int milliseconds);
/// Blocks so long, whatever happens: a slow library.
void SpendMilliseconds(int milliseconds);
/// Blocks for ever: a library that is stuck.
[[noreturn]] void Stick();

/// The current thread's device; -1 where no context is current.
int CurrentDevice();
/// Puts a function onto a stream.
void OntoStream(train::CudaStream stream, std::function<void()> work);

}  // namespace troupe::fakes
