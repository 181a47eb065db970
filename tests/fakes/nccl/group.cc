#include "tests/fakes/nccl/group.h"

#include <algorithm>
#include <utility>

#include "tests/fakes/nccl/entry.h"
#include "tests/fakes/nccl/settings.h"
#include "tests/fakes/nccl/waits.h"

namespace troupe::fakes {
namespace {

using train::NcclResult;

struct Fused {
  ncclComm* comm;
  train::CudaStream stream;
  std::vector<Call> calls;
};

struct Group {
  int depth = 0;
  std::vector<Fused> fused;
  std::vector<ncclComm*> started, aborts;
  NcclResult error = NcclResult::kSuccess;  // error of a call: nothing of the group is launched
                                            // then
};
thread_local Group group;

/// A first operation connects the ranks, on a thread of its own where nothing blocks.
NcclResult LaunchNow(ncclComm* comm, std::vector<Call> calls, train::CudaStream stream) {
  if (comm->used || comm->blocking) {
    comm->used = true;
    Launch(comm, std::move(calls), stream);
    return NcclResult::kSuccess;
  }
  comm->used = true;
  StartJob(comm, [comm, stream, calls = std::move(calls)]() mutable {
    static std::atomic<std::uint64_t> passages{0};
    const auto fault = CurrentSettings().At(Place::kConnect, ++passages);
    if (fault.action == Action::kSlow) WaitMilliseconds(comm, fault.milliseconds);
    if (fault.action == Action::kHang) WaitStop(comm);
    if (fault.action == Action::kError)
      return Refused(NcclResult::kInternalError, "injected: no connection to a peer");
    if (comm->stop) return Refused(NcclResult::kInternalError, "stopped while connecting");
    Launch(comm, std::move(calls), stream);
    return NcclResult::kSuccess;
  });
  return NcclResult::kInProgress;
}

void CheckNoChildForgotten(const std::vector<ncclComm*>& comms) {
  for (const ncclComm* comm : comms)
    for (ncclComm* child : comm->children)
      if (std::find(comms.begin(), comms.end(), child) == comms.end())
        FatalViolation("N5 children are aborted with their parent",
                       "ncclCommAbort of " + NameOf(comm) + " forgets its child, " + NameOf(child) +
                           ", whose operations go on");
}

void AbortTogether(const std::vector<ncclComm*>& comms) {
  static std::atomic<std::uint64_t> passages{0};
  CheckNoChildForgotten(comms);
  const auto fault = CurrentSettings().At(Place::kAbort, ++passages);
  if (fault.action == Action::kSlow) SpendMilliseconds(fault.milliseconds);
  if (fault.action == Action::kStuck) Stick();
  for (ncclComm* comm : comms) {
    comm->aborted = true;
    RaiseStop(comm);
  }
  for (ncclComm* comm : comms) {
    JoinJob(comm);
    WaitOperations(comm);
  }
  for (ncclComm* comm : comms) {
    if (!comm->segment) continue;
    comm->segment->mine().state = RankState::kAborted;
    comm->segment->Changed();
  }
}

NcclResult Worse(NcclResult a, NcclResult b) {
  if (a == NcclResult::kSuccess || (a == NcclResult::kInProgress && b != NcclResult::kSuccess))
    return b;
  return a;
}

}  // namespace

bool InGroup() { return group.depth > 0; }
void BeginGroup() { ++group.depth; }

NcclResult EndGroup() {
  if (group.depth == 0)
    return Refused(NcclResult::kInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return NcclResult::kSuccess;
  auto ended = std::exchange(group, {});
  NcclResult result = ended.error;
  if (result != NcclResult::kSuccess) ended.fused.clear();
  for (auto& fused : ended.fused) {
    Entry entry(fused.comm, "ncclGroupEnd", Needs::kReady);
    result = Worse(result, entry.refused()
                               ? entry.result()
                               : LaunchNow(fused.comm, std::move(fused.calls), fused.stream));
  }
  for (ncclComm* comm : ended.started) {
    if (comm->blocking) JoinJob(comm);
    result = Worse(result, comm->async.load());
  }
  if (ended.aborts.empty()) return result;
  {
    std::vector<std::unique_ptr<Entry>> entries;
    for (ncclComm* comm : ended.aborts)
      entries.push_back(std::make_unique<Entry>(comm, "ncclCommAbort", Needs::kExists));
    AbortTogether(ended.aborts);
  }
  for (ncclComm* comm : ended.aborts) DeleteComm(comm);
  return result;
}

/// Returns an error if the call may not be launched.
static NcclResult Check(ncclComm* comm, const Call& call) {
  Entry entry(comm, NameOf(call.kind), Needs::kReady);
  if (entry.refused()) return entry.result();
  if (comm->revoked) {
    Violation("N11 no operation after revoke",
              std::string(NameOf(call.kind)) + ": " + NameOf(comm) + " was revoked");
    return NcclResult::kInvalidUsage;
  }
  if (WidthOf(call.type) == 0 || static_cast<unsigned>(call.op) > 4)
    return Refused(NcclResult::kInvalidArgument,
                   std::string(NameOf(call.kind)) + ": invalid type or reduction operation");
  if (call.root < 0 || call.root >= comm->size)
    return Refused(NcclResult::kInvalidArgument,
                   std::string(NameOf(call.kind)) + ": invalid root or peer " +
                       std::to_string(call.root) + " (root should be in the 0.." +
                       std::to_string(comm->size) + " range)");
  return NcclResult::kSuccess;
}

NcclResult Begin(ncclComm* comm, const Call& call, train::CudaStream stream) {
  const auto checked = Check(comm, call);
  if (checked != NcclResult::kSuccess) {
    if (InGroup()) group.error = checked;
    return checked;
  }
  if (!InGroup()) {
    Entry entry(comm, NameOf(call.kind), Needs::kReady);
    return entry.refused() ? entry.result() : LaunchNow(comm, {call}, stream);
  }
  for (auto& fused : group.fused)
    if (fused.comm == comm && fused.stream == stream) {
      fused.calls.push_back(call);
      return NcclResult::kSuccess;
    }
  group.fused.push_back({comm, stream, {call}});
  return NcclResult::kSuccess;
}

NcclResult Started(ncclComm* comm) {
  if (InGroup()) {
    group.started.push_back(comm);
    return comm->blocking ? NcclResult::kSuccess : NcclResult::kInProgress;
  }
  if (!comm->blocking) return NcclResult::kInProgress;
  JoinJob(comm);
  return comm->async.load();
}

NcclResult Abort(ncclComm* comm) {
  if (!comm) return NcclResult::kSuccess;
  Entry entry(comm, "ncclCommAbort", Needs::kExists);
  if (InGroup()) {
    group.aborts.push_back(comm);
    return NcclResult::kSuccess;
  }
  AbortTogether({comm});
  entry.Leave();
  DeleteComm(comm);
  return NcclResult::kSuccess;
}

}  // namespace troupe::fakes
