#include "actors/train/nccl_work.h"

#include <algorithm>
#include <utility>

#include "actors/train/nccl_communicator.h"

namespace troupe::train {
namespace {

// CUDA has no event that a host thread could wait for beside another one, so an operation is asked
// for: often at first, since most end within microseconds, then twice a millisecond.
constexpr Duration kFirstLook = std::chrono::microseconds(20),
                   kLook = std::chrono::microseconds(500);

}  // namespace

NcclWork::NcclWork(std::shared_ptr<NcclCommunicator> group, CudaEvent event, std::uint64_t seq)
    : group_(std::move(group)), event_(event), seq_(seq) {}

NcclWork::~NcclWork() {
  const CudaScope scope(group_->cuda_, group_->spec_.device);
  group_->cuda_.call.event_destroy(event_);
}

bool NcclWork::Passed() {
  if (result_ == CudaResult::kNotReady) result_ = group_->cuda_.call.event_query(event_);
  return result_ != CudaResult::kNotReady;
}

bool NcclWork::Done() {
  if (Passed()) return true;
  MutexLock lock(group_->mutex_);
  return group_->stopped_.has_value();
}

Status NcclWork::Wait(Duration most) {
  const Clock& clock = group_->supervisor_.clock();
  const Instant began = clock.Now();
  for (Duration step = kFirstLook;; step = std::min(2 * step, kLook)) {
    const bool passed = Passed();
    const Instant now = clock.Now();
    {
      MutexLock lock(group_->mutex_);
      if (group_->stopped_) return group_->StoppedError();  // NC2: asked after the event
      if (!passed && now - began < most) group_->changed_.WaitFor(group_->mutex_, step);
    }
    if (passed) {  // a kernel's error, of whoever launched it, is every later call's
      const Status status = group_->cuda_.Check(result_, "operation " + std::to_string(seq_));
      if (!status.ok()) return group_->Fail(status);
      group_->CollectEnded(now);
      return absl::OkStatus();
    }
    if (now - began >= most)
      return MakeError(ErrorCode::kTimeout,
                       group_->Name() + ": operation " + std::to_string(seq_) +
                           " was not done after " + std::to_string(Seconds(most)) +
                           " s, counted from the wait's beginning; it goes on");
  }
}

}  // namespace troupe::train
