#include "tests/fakes/nccl/comm.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <unordered_set>

#include "tests/fakes/nccl/bootstrap.h"
#include "tests/fakes/nccl/settings.h"
#include "tests/fakes/nccl/version.h"
#include "tests/fakes/nccl/waits.h"

namespace troupe::fakes {
namespace {

using train::NcclResult;

std::mutex live_mutex;
std::unordered_set<ncclComm*>& Live() {
  static auto* const live = new std::unordered_set<ncclComm*>;
  return *live;
}

NcclResult Failed(NcclResult result, const std::string& what) {
  SetLastError(what);
  return result;
}

/// Ranks may share a GPU from 2.30 on, two of them, where that is asked for.
int RanksOnADeviceMax() {
  const char* enabled = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return kVersion >= train::NcclVersion(2, 30, 3) && enabled && std::strcmp(enabled, "1") == 0 ? 2
                                                                                               : 1;
}

NcclResult CheckDevices(ncclComm* comm) {
  for (int rank = 0; rank < comm->size; ++rank) {
    const int device = comm->segment->of(rank).device;
    int here = 0;
    for (int other = 0; other < rank; ++other) here += comm->segment->of(other).device == device;
    if (here < RanksOnADeviceMax()) continue;
    const std::string what = "Duplicate GPU detected : rank " + std::to_string(rank) +
                             " and a rank before it both on CUDA device " + std::to_string(device);
    Violation("N7 one rank on a GPU", what);
    return Failed(NcclResult::kInvalidUsage, what);
  }
  return NcclResult::kSuccess;
}

/// Waits for the leader's id, as every rank of a group led by one of them does.
NcclResult FormLed(ncclComm* parent, ncclComm* child, const std::vector<int>& members) {
  auto& mine = parent->segment->mine();
  const int leader = members.front();
  mine.has_id = false;
  if (parent->rank == leader && !MakeUniqueId(mine.id))
    return Failed(NcclResult::kSystemError, "no socket for the id of a child communicator");
  if (ManagedRound(parent, members, false) != End::kDone)
    return Failed(NcclResult::kInternalError, "stopped while a child communicator was formed");
  const Ids ids{parent->segment->of(leader).id};
  child->size = static_cast<int>(members.size());
  child->rank =
      static_cast<int>(std::find(members.begin(), members.end(), parent->rank) - members.begin());
  return Form(child, ids);
}

}  // namespace

ncclComm* NewComm(int size, int rank, bool blocking, ncclComm* parent) {
  auto* comm = new ncclComm;
  comm->size = size;
  comm->rank = rank;
  comm->blocking = blocking;
  comm->parent = parent;
  comm->device = parent ? parent->device : CurrentDevice();
  comm->wake = UniqueFd(eventfd(0, EFD_CLOEXEC));
  std::lock_guard lock(live_mutex);
  Live().insert(comm);
  if (parent) parent->children.push_back(comm);
  return comm;
}

void DeleteComm(ncclComm* comm) {
  {
    std::lock_guard lock(live_mutex);
    Live().erase(comm);
    if (comm->parent && Live().count(comm->parent)) std::erase(comm->parent->children, comm);
    for (ncclComm* child : comm->children) child->parent = nullptr;
  }
  delete comm;
}

bool IsLive(ncclComm* comm) {
  std::lock_guard lock(live_mutex);
  return Live().count(comm) != 0;
}

void StartJob(ncclComm* comm, std::function<NcclResult()> work) {
  JoinJob(comm);
  comm->async = NcclResult::kInProgress;
  comm->job = std::thread([comm, work = std::move(work)] {
    const auto result = work();
    auto state = NcclResult::kInProgress;  // an operation that the job launched may have failed
    comm->async.compare_exchange_strong(state, result);
  });
}

void JoinJob(ncclComm* comm) {
  if (comm->job.joinable()) comm->job.join();
}

std::vector<int> AllRanks(const ncclComm* comm) {
  std::vector<int> ranks(static_cast<std::size_t>(comm->size));
  for (int rank = 0; rank < comm->size; ++rank) ranks[static_cast<std::size_t>(rank)] = rank;
  return ranks;
}

End ManagedRound(ncclComm* comm, const std::vector<int>& members, bool watch_deaths) {
  Segment& segment = *comm->segment;
  const auto mine = segment.mine().managed.fetch_add(1) + 1;
  segment.Changed();
  return segment.Wait(
      [&] {
        return std::all_of(members.begin(), members.end(),
                           [&](int rank) { return segment.of(rank).managed.load() >= mine; });
      },
      comm->stop, watch_deaths);
}

NcclResult Form(ncclComm* comm, const Ids& ids) {
  static std::atomic<std::uint64_t> passages{0};
  const auto fault = CurrentSettings().At(Place::kInit, ++passages);
  if (fault.action == Action::kError)
    return Failed(NcclResult::kSystemError, "injected: initialisation failed");
  if (fault.action == Action::kSlow) WaitMilliseconds(comm, fault.milliseconds);
  if (fault.action == Action::kHang) WaitStop(comm);
  std::string error;
  UniqueFd fd =
      Join({ids.data(), static_cast<int>(ids.size()), comm->rank, comm->size, comm->wake.get()},
           comm->stop, error);
  if (!fd.valid())
    return Failed(comm->stop ? NcclResult::kInternalError : NcclResult::kRemoteError, error);
  auto segment = Segment::Map(std::move(fd), comm->rank, comm->size);
  if (!segment) return Failed(NcclResult::kSystemError, "the segment could not be mapped");
  segment->mine().pid = getpid();
  segment->mine().device = comm->device;
  segment->mine().state = RankState::kPresent;
  {
    std::lock_guard lock(comm->mutex);  // RaiseStop looks for it
    comm->segment = std::move(segment);
  }
  if (ManagedRound(comm, AllRanks(comm), false) != End::kDone)
    return Failed(NcclResult::kInternalError, "bootstrap: aborted");
  comm->segment->WatchPeers();
  return CheckDevices(comm);
}

NcclResult FormSplit(ncclComm* parent, ncclComm* child, int color, int key) {
  auto& mine = parent->segment->mine();
  mine.color = color;
  mine.key = key;
  if (ManagedRound(parent, AllRanks(parent), false) != End::kDone)
    return Failed(NcclResult::kInternalError, "stopped in a split");
  std::vector<int> members;
  for (int rank = 0; rank < parent->size; ++rank)
    if (parent->segment->of(rank).color == color) members.push_back(rank);
  std::stable_sort(members.begin(), members.end(), [parent](int a, int b) {
    return parent->segment->of(a).key < parent->segment->of(b).key;
  });
  const auto result = child ? FormLed(parent, child, members) : NcclResult::kSuccess;
  // Nobody writes the next split's colour while somebody still reads this one's.
  if (!child) ManagedRound(parent, {}, false);
  return ManagedRound(parent, AllRanks(parent), false) == End::kDone ? result
                                                                     : NcclResult::kInternalError;
}

NcclResult FormShrink(ncclComm* parent, ncclComm* child, const std::vector<int>& members) {
  return FormLed(parent, child, members);
}

NcclResult FormGrow(ncclComm* parent, ncclComm* child, const train::NcclUniqueId* id) {
  auto& mine = parent->segment->mine();
  mine.has_id = id != nullptr;
  if (id) mine.id = *id;
  if (ManagedRound(parent, AllRanks(parent), false) != End::kDone)
    return Failed(NcclResult::kInternalError, "stopped while the communicator grew");
  Ids ids;
  for (int rank = 0; rank < parent->size && ids.empty(); ++rank)
    if (parent->segment->of(rank).has_id) ids.push_back(parent->segment->of(rank).id);
  if (ids.empty()) return Failed(NcclResult::kInvalidArgument, "no rank gave the id to grow by");
  const auto result = Form(child, ids);
  return ManagedRound(parent, AllRanks(parent), false) == End::kDone ? result
                                                                     : NcclResult::kInternalError;
}

void RaiseStop(ncclComm* comm) {
  comm->stop = true;
  eventfd_write(comm->wake.get(), 1);
  std::lock_guard lock(comm->mutex);
  if (comm->segment) comm->segment->Changed();
  comm->changed.notify_all();
}

void WaitOperations(ncclComm* comm) {
  std::unique_lock lock(comm->mutex);
  comm->changed.wait(lock, [comm] { return comm->ended == comm->launched; });
}

std::string NameOf(const ncclComm* comm) {
  return "rank " + std::to_string(comm->rank) + " of " + std::to_string(comm->size);
}

}  // namespace troupe::fakes
