// A communicator of the fake NCCL: its memory, its operations in the order they were launched, its
// one asynchronous job, and what its rules need to know.
//
// NCCL's calls come in through entry.h, which holds the rules about threads. Operations run on the
// threads of the fake CUDA's streams, jobs on a thread of the communicator.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/train/nccl_types.h"
#include "runtime/base/unique_fd.h"
#include "tests/fakes/nccl/segment.h"

namespace troupe::fakes {

/// A call of a collective, send or receive.
struct Call {
  Kind kind;
  const void* send;
  void* recv;
  std::size_t count;
  train::NcclType type;
  train::NcclOp op;
  int root;  // or the peer
};

}  // namespace troupe::fakes

struct ncclComm {
  int rank = 0, size = 0, device = 0;
  bool blocking = true;
  std::unique_ptr<troupe::fakes::Segment> segment;  // null until it is formed
  troupe::UniqueFd wake;                            // readable once it is to stop
  std::atomic<bool> stop{false};                    // revoked or aborted: what runs ends
  std::atomic<troupe::train::NcclResult> async{troupe::train::NcclResult::kInProgress};
  bool revoked = false, aborted = false, finalized = false, used = false;
  std::thread job;
  ncclComm* parent = nullptr;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<ncclComm*> children;  // living ones
  std::uint64_t launched = 0, ended = 0;  // operations, in order

  std::atomic<std::thread::id> inside{};  // the thread in a call
};

namespace troupe::fakes {

using Ids = std::vector<train::NcclUniqueId>;

/// A communicator that is not formed yet, on the thread's current device; registered as live.
ncclComm* NewComm(int size, int rank, bool blocking, ncclComm* parent);
/// Forgets it and frees it; nothing of it may run.
void DeleteComm(ncclComm* comm);
/// Returns true if the pointer is a communicator that was neither destroyed nor aborted.
bool IsLive(ncclComm* comm);

/// Runs `work` on the communicator's thread, which sets the state it returns.
void StartJob(ncclComm* comm, std::function<train::NcclResult()> work);
/// Blocks until the job has ended.
void JoinJob(ncclComm* comm);

/// Bodies of jobs: forms a communicator with these ids, or a child by what the parent's ranks
/// agree on.
train::NcclResult Form(ncclComm* comm, const Ids& ids);
train::NcclResult FormSplit(ncclComm* parent, ncclComm* child, int color, int key);
train::NcclResult FormShrink(ncclComm* parent, ncclComm* child, const std::vector<int>& members);
train::NcclResult FormGrow(ncclComm* parent, ncclComm* child, const train::NcclUniqueId* id);

/// Makes whatever runs end: the flag and everything that somebody may wait on.
void RaiseStop(ncclComm* comm);
/// Blocks until no operation of it is on a stream.
void WaitOperations(ncclComm* comm);
/// A barrier of these ranks outside of operations.
End ManagedRound(ncclComm* comm, const std::vector<int>& members, bool watch_deaths);
std::vector<int> AllRanks(const ncclComm* comm);

/// Puts calls of one group onto a stream as one operation each; in order after what was launched.
void Launch(ncclComm* comm, std::vector<Call> calls, train::CudaStream stream);
/// Runs a collective, or sends and receives that go on side by side; on the stream's thread.
End RunCollective(ncclComm* comm, const Call& call, std::uint64_t number);
End RunMail(ncclComm* comm, const std::vector<Call>& calls, std::uint64_t number);

/// "rank 2 of 4".
std::string NameOf(const ncclComm* comm);
const char* NameOf(Kind kind);
bool IsMail(Kind kind);

}  // namespace troupe::fakes
