#include "actors/train/nccl_communicator.h"

#include <algorithm>
#include <utility>

#include "actors/train/device_mutex.h"
#include "actors/train/nccl_work.h"

namespace troupe::train {
namespace {

constexpr Duration kFirstAsk = std::chrono::microseconds(50), kAsk = std::chrono::milliseconds(2);

}  // namespace

const char* NameOf(Collective kind) {
  constexpr const char* names[] = {"all-reduce",     "broadcast",  "reduce", "all-gather",
                                   "reduce-scatter", "all-to-all", "send",   "receive",
                                   "gather",         "scatter",    "barrier"};
  return names[static_cast<int>(kind)];
}

std::shared_ptr<NcclCommunicator> NcclCommunicator::Form(const CudaApi& cuda, const NcclApi& nccl,
                                                         Supervisor& supervisor, GroupSpec spec,
                                                         GroupHooks hooks) {
  std::shared_ptr<NcclCommunicator> group(
      new NcclCommunicator(cuda, nccl, supervisor, std::move(spec), std::move(hooks)));
  GroupRules rules(group->Name(), group->spec_.times, nccl.features().revoke);
  group->id_ = supervisor.Add(group, std::move(rules));
  return group;
}

NcclCommunicator::NcclCommunicator(const CudaApi& cuda, const NcclApi& nccl, Supervisor& supervisor,
                                   GroupSpec spec, GroupHooks hooks)
    : cuda_(cuda),
      nccl_(nccl),
      supervisor_(supervisor),
      spec_(std::move(spec)),
      hooks_(std::move(hooks)),
      device_mutex_(DeviceMutex(spec_.device)) {}

NcclCommunicator::~NcclCommunicator() {
  if (!stream_) return;
  const CudaScope scope(cuda_, spec_.device);
  cuda_.call.stream_destroy(stream_);
}

std::string NcclCommunicator::Name() const {
  return "group " + spec_.name + ", epoch " + std::to_string(spec_.epoch) + ", rank " +
         std::to_string(spec_.rank) + " of " + std::to_string(spec_.size);
}

Status NcclCommunicator::StoppedError() {
  mutex_.AssertHeld();
  return MakeError(ErrorCode::kFenced, Name() + ": stopped: " + *stopped_ +
                                           "\n  what its operations wrote is undefined; form the "
                                           "group anew under the next epoch");
}

Status NcclCommunicator::Open() {
  MutexLock lock(mutex_);
  if (stopped_) return StoppedError();
  if (state_ == GroupState::kReady) return absl::OkStatus();
  return MakeError(ErrorCode::kFenced, Name() + ": no operation can be started while it is " +
                                           std::string(NameOf(state_)));
}

Status NcclCommunicator::AwaitReady() {
  MutexLock lock(mutex_);
  while (state_ == GroupState::kForming && !stopped_) changed_.Wait(mutex_);
  if (stopped_) return StoppedError();
  return absl::OkStatus();
}

void NcclCommunicator::AwaitReleased() {
  MutexLock lock(mutex_);
  while (state_ != GroupState::kReleased) changed_.Wait(mutex_);
}

Status NcclCommunicator::Settle(const std::string& doing, bool leaves) {
  for (Duration step = kFirstAsk;; step = std::min(2 * step, kAsk)) {
    {
      MutexLock lock(device_mutex_);
      if (!comm_) {
        MutexLock told(mutex_);  // the aborting thread has recorded why
        return stopped_ ? StoppedError() : MakeError(ErrorCode::kFenced, doing + ": aborted");
      }
      NcclResult state = NcclResult::kInternalError;
      TROUPE_TRY(nccl_.Check(nccl_.call.async_error(comm_, &state), doing));
      if (state != NcclResult::kInProgress) return nccl_.Check(state, doing);
    }
    MutexLock lock(mutex_);
    if (leaves && stopped_) return StoppedError();
    changed_.WaitFor(mutex_, step);
  }
}

Status NcclCommunicator::Init() {
  const CudaScope scope(cuda_, spec_.device);
  TROUPE_TRY(scope.status());
  if (!stream_)
    TROUPE_TRY(cuda_.Check(cuda_.call.stream_create(&stream_, kCudaStreamNonBlocking),
                           "making its stream"));
  const std::string doing = "initialising its communicator";
  const int ids = static_cast<int>(spec_.ids.size());
  if (ids == 0 || (ids > 1 && !nccl_.features().scalable))
    return MakeError(ErrorCode::kInvalid, doing + " by " + std::to_string(ids) + " ids: NCCL " +
                                              VersionText(nccl_.version()) + " takes " +
                                              (nccl_.features().scalable ? "one or more" : "one"));
  {
    MutexLock lock(device_mutex_);
    if (aborted_) return MakeError(ErrorCode::kFenced, doing + ": stopped before it began");
    NcclConfig config;
    config.blocking = 0;
    std::vector<NcclUniqueId> several(spec_.ids);
    const auto result =
        ids == 1 ? nccl_.call.init_rank(&comm_, spec_.size, several[0], spec_.rank, &config)
                 : nccl_.call.init_scalable(&comm_, spec_.size, spec_.rank, ids, several.data(),
                                            &config);
    TROUPE_TRY(nccl_.Check(result, doing));
  }
  return Settle(doing, true);
}

Status NcclCommunicator::Revoke() {
  const std::string doing = "revoking";
  {
    MutexLock lock(device_mutex_);
    if (!comm_) return MakeError(ErrorCode::kFenced, doing + ": aborted before");
    NcclResult state = NcclResult::kInternalError;
    TROUPE_TRY(nccl_.Check(nccl_.call.async_error(comm_, &state), doing));
    if (state == NcclResult::kInProgress)  // a caller connects: only an abort ends that
      return MakeError(ErrorCode::kFenced, doing + ": an earlier call is in progress");
    TROUPE_TRY(nccl_.Check(nccl_.call.revoke(comm_, 0), doing));
  }
  return Settle(doing, false);
}

Status NcclCommunicator::Finalize() {
  const std::string doing = "finalizing";
  {
    MutexLock lock(device_mutex_);
    if (!comm_) return MakeError(ErrorCode::kFenced, doing + ": aborted before");
    TROUPE_TRY(nccl_.Check(nccl_.call.finalize(comm_), doing));
  }
  return Settle(doing, true);
}

Status NcclCommunicator::Destroy() {
  MutexLock lock(device_mutex_);
  const CudaScope scope(cuda_, spec_.device);
  return nccl_.Check(nccl_.call.destroy(std::exchange(comm_, nullptr)), "destroying");
}

void NcclCommunicator::AbortTogether(std::span<Supervised* const> all) {
  MutexLock lock(device_mutex_);
  const CudaScope scope(cuda_, spec_.device);
  nccl_.call.group_start();
  for (Supervised* each : all) {
    auto* group = static_cast<NcclCommunicator*>(each);
    group->device_mutex_.AssertHeld();  // each device has one mutex
    group->aborted_ = true;
    if (group->comm_) nccl_.call.abort(std::exchange(group->comm_, nullptr));
  }
  nccl_.call.group_end();
}

void NcclCommunicator::Wake(const std::string& reason) {
  MutexLock lock(mutex_);
  if (!stopped_) stopped_ = reason;
  changed_.NotifyAll();
}

void NcclCommunicator::Tell(GroupState state, const std::string& text) {
  std::deque<std::shared_ptr<NcclWork>> ended;
  {
    MutexLock lock(mutex_);
    state_ = state;
    if (state == GroupState::kReleased) {
      ended.swap(outstanding_);
      if (!stopped_) stopped_ = "it was released";
    }
    changed_.NotifyAll();
  }
  if (hooks_.on_state) hooks_.on_state(state, text);
}

void NcclCommunicator::Stop(const std::string& reason) {
  const Supervisor::Id ids[] = {id_};
  supervisor_.Stop(ids, reason);
}

Status NcclCommunicator::Release() {
  supervisor_.Release(id_);
  AwaitReleased();
  MutexLock lock(mutex_);
  return *stopped_ == "it was released" ? absl::OkStatus() : StoppedError();
}

RankProgress NcclCommunicator::progress() {
  MutexLock lock(mutex_);
  return watch_.progress(spec_.rank);
}

}  // namespace troupe::train
