// The exported functions that end communicators, and what the real ones punish after a peer's end.
#include "tests/fakes/nccl/entry.h"
#include "tests/fakes/nccl/group.h"
#include "tests/fakes/nccl/settings.h"
#include "tests/fakes/nccl/waits.h"

using namespace troupe::fakes;
using namespace troupe::train;

namespace {

/// The orderly ends wait for every rank: for one that aborted or died they wait for ever.
void CheckPeers(ncclComm* comm, const char* call) {
  const int lost = comm->segment ? comm->segment->FirstLost() : -1;
  if (lost < 0) return;
  Violation(
      "N3 only abort after a peer's end",
      std::string(call) + " of " + NameOf(comm) + " after rank " + std::to_string(lost) +
          (comm->segment->of(lost).state.load() == RankState::kAborted ? " aborted" : " died") +
          ": it would wait for ever");
}

/// Flushes, and waits for all ranks to do the same.
NcclResult Quiesce(ncclComm* comm, const char* call) {
  WaitOperations(comm);
  const bool watches = CurrentSettings().ends_on_violation;
  if (ManagedRound(comm, AllRanks(comm), watches) == End::kDone) {
    comm->finalized = true;
    return NcclResult::kSuccess;
  }
  if (!comm->stop) CheckPeers(comm, call);
  return Refused(NcclResult::kInternalError, std::string(call) + ": stopped");
}

}  // namespace

extern "C" {

NcclResult ncclCommFinalize(NcclComm comm) {
  Entry entry(comm, "ncclCommFinalize", Needs::kReady);
  if (entry.refused()) return entry.result();
  if (comm->revoked) {
    Violation("N4 no finalize after revoke", "ncclCommFinalize of " + NameOf(comm));
    return Refused(NcclResult::kInvalidUsage, "ncclCommFinalize: communicator was revoked");
  }
  if (comm->finalized)
    return Refused(NcclResult::kInvalidArgument, "ncclCommFinalize: called twice");
  CheckPeers(comm, "ncclCommFinalize");
  StartJob(comm, [comm] { return Quiesce(comm, "ncclCommFinalize"); });
  return Started(comm);
}

NcclResult ncclCommDestroy(NcclComm comm) {
  if (!comm) return NcclResult::kSuccess;
  Entry entry(comm, "ncclCommDestroy", Needs::kQuiet);
  if (entry.refused()) return entry.result();
  CheckPeers(comm, "ncclCommDestroy");
  if (!comm->finalized && !comm->revoked && comm->async.load() == NcclResult::kSuccess)
    Quiesce(comm, "ncclCommDestroy");
  JoinJob(comm);
  WaitOperations(comm);
  if (comm->segment) {
    comm->segment->mine().state = RankState::kDestroyed;
    comm->segment->Changed();
  }
  entry.Leave();
  DeleteComm(comm);
  return NcclResult::kSuccess;
}

NcclResult ncclCommAbort(NcclComm comm) { return Abort(comm); }

NcclResult ncclCommRevoke(NcclComm comm, int flags) {
  static std::atomic<std::uint64_t> passages{0};
  if (comm && IsLive(comm) && comm->async.load() == NcclResult::kInProgress)
    FatalViolation("N10 only what is ready is revoked",
                   "ncclCommRevoke of " + NameOf(comm) + " while it is in progress");
  Entry entry(comm, "ncclCommRevoke", Needs::kQuiet);
  if (entry.refused()) return entry.result();
  if (flags != 0 || comm->revoked)
    return Refused(NcclResult::kInvalidArgument, "ncclCommRevoke: flags, or revoked before");
  const auto fault = CurrentSettings().At(Place::kRevoke, ++passages);
  comm->revoked = true;
  RaiseStop(comm);
  StartJob(comm, [comm, fault] {
    if (fault.action == Action::kSlow) SpendMilliseconds(fault.milliseconds);
    if (fault.action == Action::kStuck) Stick();
    WaitOperations(comm);
    comm->segment->mine().state = RankState::kRevoked;
    comm->segment->Changed();
    return fault.action == Action::kError
               ? Refused(NcclResult::kInternalError, "injected: revoke failed")
               : NcclResult::kSuccess;
  });
  return Started(comm);
}

}  // extern "C"
