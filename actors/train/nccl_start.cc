// Starting operations, and looking at those that run.
#include <utility>

#include "actors/train/nccl_communicator.h"
#include "actors/train/nccl_work.h"

namespace troupe::train {
namespace {

constexpr Duration kWatchEvery = std::chrono::milliseconds(50);
constexpr std::size_t kOutstandingMax = 4096;

/// An argument of the caller's, which says nothing about the group.
bool IsCallersFault(const Status& status) { return ErrorCodeOf(status) == ErrorCode::kInvalid; }

}  // namespace

NcclResult NcclCommunicator::CallOne(const Operation& operation) {
  const auto& call = nccl_.call;
  const auto& [kind, send, recv, count, data, reduce, root, tag, most, send_counts, recv_counts] =
      operation;
  const int type_number = static_cast<int>(data), op_number = static_cast<int>(reduce);
  if (type_number >= kNcclTypes || op_number >= kNcclOps || !send_counts.empty())
    return NcclResult::kInvalidArgument;
  const NcclType type{type_number};
  const NcclOp op{op_number};
  switch (kind) {
    case Collective::kAllReduce:
      return call.all_reduce(send, recv, count, type, op, comm_, stream_);
    case Collective::kBroadcast:
      return call.broadcast(send, recv, count, type, root, comm_, stream_);
    case Collective::kReduce:
      return call.reduce(send, recv, count, type, op, root, comm_, stream_);
    case Collective::kAllGather:
      return call.all_gather(send, recv, count, type, comm_, stream_);
    case Collective::kReduceScatter:
      return call.reduce_scatter(send, recv, count, type, op, comm_, stream_);
    case Collective::kSend:
      return call.send(send, count, type, root, comm_, stream_);
    case Collective::kRecv:
      return call.recv(recv, count, type, root, comm_, stream_);
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kBarrier:
      return NcclResult::kInvalidArgument;
    case Collective::kAllToAll:
      break;
  }
  // Sends and receives of one group are what the single call is, and every version has them.
  const std::size_t block = count * WidthOf(type);
  for (int peer = 0; peer < spec_.size; ++peer) {
    const std::size_t at = block * static_cast<std::size_t>(peer);
    auto result = call.send(static_cast<const char*>(send) + at, count, type, peer, comm_, stream_);
    if (result == NcclResult::kSuccess)
      result = call.recv(static_cast<char*>(recv) + at, count, type, peer, comm_, stream_);
    if (result != NcclResult::kSuccess) return result;
  }
  return NcclResult::kSuccess;
}

Status NcclCommunicator::Enqueue(std::span<const Operation> operations) {
  NcclResult ended;
  {
    MutexLock lock(device_mutex_);
    TROUPE_TRY(Open());  // NC3
    const CudaScope scope(cuda_, spec_.device);
    TROUPE_TRY(scope.status());
    Status status;
    nccl_.call.group_start();
    for (const auto& operation : operations) {
      if (!status.ok()) break;
      status = nccl_.Check(CallOne(operation), std::string("starting ") + NameOf(operation.kind));
    }
    ended = nccl_.call.group_end();
    TROUPE_TRY(status);
    TROUPE_TRY(nccl_.Check(ended, "starting operations"));
  }
  return ended == NcclResult::kInProgress ? Settle("connecting its ranks", true) : absl::OkStatus();
}

Status NcclCommunicator::Fail(const Status& why) {
  Wake(MessageOf(why));
  Stop(MessageOf(why));
  return Open();
}

StatusOr<std::shared_ptr<Work>> NcclCommunicator::Start(std::span<const Operation> operations) {
  MutexLock one(start_mutex_);
  TROUPE_TRY(MakeRoom());
  if (const Status status = Enqueue(operations); !status.ok()) {
    if (ErrorCodeOf(status) == ErrorCode::kFenced) return status;
    if (IsCallersFault(status))
      return MakeError(ErrorCode::kInvalid, Name() + ": " + MessageOf(status));
    return Fail(status);
  }
  const CudaScope scope(cuda_, spec_.device);
  TROUPE_TRY(scope.status());
  CudaEvent event = nullptr;
  Status status =
      cuda_.Check(cuda_.call.event_create(&event, kCudaEventDisableTiming), "making an event");
  if (!status.ok()) return Fail(status);
  const auto work = std::make_shared<NcclWork>(shared_from_this(), event, ++seq_);
  status = cuda_.Check(cuda_.call.event_record(event, stream_), "recording an event");
  if (!status.ok()) return Fail(status);
  const Instant now = supervisor_.clock().Now();
  bool first;
  {
    MutexLock lock(mutex_);
    if (stopped_) return StoppedError();
    first = outstanding_.empty();
    outstanding_.push_back(work);
    watch_.OnEntered(work->seq(), now);
  }
  if (first) supervisor_.Running(id_);
  return std::shared_ptr<Work>(work);
}

Status NcclCommunicator::MakeRoom() {
  std::shared_ptr<NcclWork> oldest;
  CollectEnded(supervisor_.clock().Now());
  {
    MutexLock lock(mutex_);
    if (outstanding_.size() < kOutstandingMax) return absl::OkStatus();
    oldest = outstanding_.front();
  }
  return oldest->Wait(Duration::max());  // ends with the group's stop
}

void NcclCommunicator::CollectEnded(Instant now) {
  std::deque<std::shared_ptr<NcclWork>> ended;  // destroyed without the lock
  MutexLock lock(mutex_);
  while (!stopped_ && !outstanding_.empty() && outstanding_.front()->Passed()) {
    watch_.OnFinished(outstanding_.front()->seq(), now);
    ended.push_back(std::move(outstanding_.front()));
    outstanding_.pop_front();
  }
  lock.Unlock();
  ended.clear();
  lock.Lock();
}

Status NcclCommunicator::Watch(Instant now, std::optional<Instant>& again) {
  CollectEnded(now);
  std::optional<ProgressWatch::Overdue> overdue;
  std::uint64_t oldest;
  {
    MutexLock lock(mutex_);
    if (outstanding_.empty() || stopped_) return absl::OkStatus();
    overdue = watch_.OnTick(now);
    oldest = outstanding_.front()->seq();
  }
  again = now + kWatchEvery;
  if (overdue && hooks_.on_overdue) hooks_.on_overdue(*overdue);
  if (!device_mutex_.TryLock()) return absl::OkStatus();  // somebody is inside: next time
  Status status;
  if (comm_) {
    NcclResult state = NcclResult::kSuccess;
    status = nccl_.Check(nccl_.call.async_error(comm_, &state), "asking for its state");
    if (status.ok())
      status =
          nccl_.Check(state, "operation " + std::to_string(oldest) + " or one after it failed");
  }
  device_mutex_.Unlock();
  return status;
}

}  // namespace troupe::train
