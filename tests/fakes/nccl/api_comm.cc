// The exported functions that make communicators, and those that ask about one.
#include <algorithm>
#include <cstring>

#include "tests/fakes/nccl/bootstrap.h"
#include "tests/fakes/nccl/entry.h"
#include "tests/fakes/nccl/group.h"
#include "tests/fakes/nccl/settings.h"
#include "tests/fakes/nccl/version.h"
#include "tests/fakes/nccl/waits.h"

using namespace troupe::fakes;
using namespace troupe::train;

namespace {

/// Reads a configuration's `blocking`, as far as its own size goes.
NcclResult ReadConfig(const NcclConfig* config, bool inherited, bool& blocking) {
  blocking = inherited;
  if (!config) return NcclResult::kSuccess;
  if (config->magic != kNcclMagic || config->size < offsetof(NcclConfig, cga_cluster_size)) {
    const char* what = "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER";
    Violation("N6 configurations are initialised", what);
    return Refused(NcclResult::kInvalidArgument, what);
  }
  if (config->blocking == kNcclUndefined) return NcclResult::kSuccess;
  if (config->blocking != 0 && config->blocking != 1)
    return Refused(NcclResult::kInvalidArgument,
                   "Invalid config blocking attribute value " + std::to_string(config->blocking));
  blocking = config->blocking == 1;
  return NcclResult::kSuccess;
}

NcclResult Init(NcclComm* comm, int size, int rank, Ids ids, const NcclConfig* config) {
  if (!comm) return Refused(NcclResult::kInvalidArgument, "comm argument is NULL");
  *comm = nullptr;
  if (size < 1 || size > kRanksMax || rank < 0 || rank >= size)
    return Refused(NcclResult::kInvalidArgument,
                   "Invalid rank requested : " + std::to_string(rank) + "/" + std::to_string(size));
  if (ids.empty() || static_cast<int>(ids.size()) > size ||
      !std::all_of(ids.begin(), ids.end(), IsUniqueId))
    return Refused(NcclResult::kInvalidArgument, "improperly initialized ncclUniqueId");
  bool blocking;
  if (const auto result = ReadConfig(config, true, blocking); result != NcclResult::kSuccess)
    return result;
  if (CurrentDevice() < 0)
    return Refused(NcclResult::kUnhandledCudaError, "no CUDA context is current");
  ncclComm* made = NewComm(size, rank, blocking, nullptr);
  *comm = made;
  Entry entry(made, "ncclCommInitRank", Needs::kExists);
  StartJob(made, [made, ids = std::move(ids)] { return Form(made, ids); });
  return Started(made);
}

/// A child's job runs on the parent, which is in progress with it; `work` gets the child.
template <class Work>
NcclResult StartChild(ncclComm* parent, NcclComm* out, const NcclConfig* config, int size, int rank,
                      bool member, Work work) {
  bool blocking;
  const auto read = ReadConfig(config, parent->blocking, blocking);
  if (read != NcclResult::kSuccess) return read;
  ncclComm* child = member ? NewComm(size, rank, blocking, parent) : nullptr;
  *out = child;
  StartJob(parent, [child, work] {
    const auto result = work(child);
    if (child) child->async = result;
    return result;
  });
  return Started(parent);
}

}  // namespace

extern "C" {

NcclResult ncclGetVersion(int* version) {
  if (!version) return NcclResult::kInvalidArgument;
  *version = kVersion;
  return NcclResult::kSuccess;
}
const char* ncclGetErrorString(NcclResult result) {
  constexpr const char* texts[] = {
      "no error",
      "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
      "unhandled system error (run with NCCL_DEBUG=INFO for details)",
      "internal error - please report this issue to the NCCL developers",
      "invalid argument (run with NCCL_DEBUG=WARN for details)",
      "invalid usage (run with NCCL_DEBUG=WARN for details)",
      "remote process exited or there was a network error",
      "NCCL operation in progress"};
  const auto index = static_cast<std::size_t>(result);
  return index < std::size(texts) ? texts[index] : "unknown result code";
}
const char* ncclGetLastError(NcclComm comm) { return LastError(); }

NcclResult ncclGetUniqueId(NcclUniqueId* id) {
  if (!id) return Refused(NcclResult::kInvalidArgument, "GetUniqueId: argument is NULL");
  return MakeUniqueId(*id) ? NcclResult::kSuccess
                           : Refused(NcclResult::kSystemError, "bootstrap: no socket");
}
NcclResult ncclCommInitRankConfig(NcclComm* comm, int size, NcclUniqueId id, int rank,
                                  NcclConfig* config) {
  return Init(comm, size, rank, {id}, config);
}
NcclResult ncclCommInitRank(NcclComm* comm, int size, NcclUniqueId id, int rank) {
  return Init(comm, size, rank, {id}, nullptr);
}
NcclResult ncclCommInitRankScalable(NcclComm* comm, int size, int rank, int id_count,
                                    NcclUniqueId* ids, NcclConfig* config) {
  if (id_count < 1 || !ids) return Refused(NcclResult::kInvalidArgument, "no ncclUniqueId");
  return Init(comm, size, rank, Ids(ids, ids + id_count), config);
}

NcclResult ncclCommSplit(NcclComm comm, int color, int key, NcclComm* child, NcclConfig* config) {
  Entry entry(comm, "ncclCommSplit", Needs::kReady);
  if (entry.refused()) return entry.result();
  if (!child || color < kNcclNoColor)
    return Refused(NcclResult::kInvalidArgument, "ncclCommSplit: color " + std::to_string(color));
  return StartChild(comm, child, config, 0, 0, color != kNcclNoColor,
                    [=](ncclComm* made) { return FormSplit(comm, made, color, key); });
}

NcclResult ncclCommShrink(NcclComm comm, int* excluded, int excluded_count, NcclComm* child,
                          NcclConfig* config, int flags) {
  Entry entry(comm, "ncclCommShrink", flags == kNcclShrinkAbort ? Needs::kQuiet : Needs::kReady);
  if (entry.refused()) return entry.result();
  if (!child || !excluded || excluded_count < 1)
    return Refused(NcclResult::kInvalidArgument, "ncclCommShrink: no rank to exclude");
  std::vector<int> members;
  for (int rank : AllRanks(comm))
    if (std::find(excluded, excluded + excluded_count, rank) == excluded + excluded_count)
      members.push_back(rank);
  if (std::find(members.begin(), members.end(), comm->rank) == members.end())
    return Refused(NcclResult::kInvalidArgument, "ncclCommShrink: an excluded rank called it");
  if (flags == kNcclShrinkAbort) {  // in the caller, as the real one
    RaiseStop(comm);
    WaitOperations(comm);
    comm->revoked = true;
    comm->stop = false;
  }
  return StartChild(comm, child, config, 0, 0, true,
                    [=](ncclComm* made) { return FormShrink(comm, made, members); });
}

NcclResult ncclCommGetUniqueId(NcclComm comm, NcclUniqueId* id) {
  Entry entry(comm, "ncclCommGetUniqueId", Needs::kReady);
  return entry.refused() ? entry.result() : ncclGetUniqueId(id);
}

NcclResult ncclCommGrow(NcclComm comm, int size, const NcclUniqueId* id, int rank, NcclComm* child,
                        NcclConfig* config) {
  if (!comm && !id)
    return Refused(NcclResult::kInvalidArgument, "ncclCommGrow: a new rank needs the id");
  if (!comm) return Init(child, size, rank, {*id}, config);
  Entry entry(comm, "ncclCommGrow", Needs::kReady);
  if (entry.refused()) return entry.result();
  if (!child || size <= comm->size || rank != -1)
    return Refused(NcclResult::kInvalidArgument, "ncclCommGrow: size or rank");
  const bool has_id = id != nullptr;
  const NcclUniqueId given = id ? *id : NcclUniqueId{};
  return StartChild(comm, child, config, size, comm->rank, true, [=](ncclComm* made) {
    return FormGrow(comm, made, has_id ? &given : nullptr);
  });
}

NcclResult ncclCommGetAsyncError(NcclComm comm, NcclResult* state) {
  Entry entry(comm, "ncclCommGetAsyncError", Needs::kExists);
  if (entry.refused()) return entry.result();
  *state = comm->async.load();
  return NcclResult::kSuccess;
}
NcclResult ncclCommCount(NcclComm comm, int* size) {
  Entry entry(comm, "ncclCommCount", Needs::kReady);
  if (!entry.refused()) *size = comm->size;
  return entry.result();
}
NcclResult ncclCommUserRank(NcclComm comm, int* rank) {
  Entry entry(comm, "ncclCommUserRank", Needs::kReady);
  if (!entry.refused()) *rank = comm->rank;
  return entry.result();
}
NcclResult ncclCommCuDevice(NcclComm comm, int* device) {
  Entry entry(comm, "ncclCommCuDevice", Needs::kReady);
  if (!entry.refused()) *device = comm->device;
  return entry.result();
}

}  // extern "C"
