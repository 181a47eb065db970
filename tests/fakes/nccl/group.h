// Group calls: what a thread asked for since ncclGroupStart, begun at ncclGroupEnd.
#pragma once

#include <vector>

#include "tests/fakes/nccl/comm.h"

namespace troupe::fakes {

/// Returns true if this thread is between ncclGroupStart and ncclGroupEnd.
bool InGroup();
void BeginGroup();
/// Begins all that was asked for; kInProgress where a communicator is not blocking.
train::NcclResult EndGroup();

/// A collective, send or receive: now, or at the group's end.
train::NcclResult Begin(ncclComm* comm, const Call& call, train::CudaStream stream);
/// A job was started: waits for it where the communicator blocks, now or at the group's end.
train::NcclResult Started(ncclComm* comm);
/// Aborts: all of a group together.
train::NcclResult Abort(ncclComm* comm);

}  // namespace troupe::fakes
