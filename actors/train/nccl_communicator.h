// A group's communicator over NCCL: formed without blocking under a deadline, stopped from any
// thread by push, and never waited for in a call that cannot be left.
//
//   auto group = NcclCommunicator::Form(cuda, nccl, supervisor, {.name = "dp", .epoch = 1, .rank =
//   r,
//                                       .size = n, .device = d, .ids = {id}});
//   TROUPE_TRY(group->AwaitReady());
//   TROUPE_ASSIGN(auto work, group->Start({{...}}));
//   supervisor.Stop({group->id()}, "rank 3 was killed");      // on word of a death
//   work->Wait(...)                                           // kFenced, within milliseconds
//
// Its own stream carries the operations; `stream` is where a caller makes its kernels wait
// (cuStreamWaitEvent on the work's event is what Work::Wait does on the host).
//
//   NC1  Every call into NCCL is made with the device's mutex held, and none blocks but abort and
//        destroy.
//   NC2  After a stop an operation counts as failed also where its event has passed: an abort ends
//        kernels in any way.
//   NC3  No operation is started after a stop, and the event of one is recorded only once the
//        library has it.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/train/communicator.h"
#include "actors/train/core/progress.h"
#include "actors/train/cuda_api.h"
#include "actors/train/nccl_api.h"
#include "actors/train/supervisor.h"
#include "runtime/base/mutex.h"

namespace troupe::train {

/// The group, and this rank's place in it.
struct GroupSpec {
  std::string name;
  std::uint64_t epoch = 1;
  int rank = 0, size = 1, device = 0;
  std::vector<NcclUniqueId> ids;
  GroupTimes times;
};

/// Callbacks for a group, on the supervisor's thread: they return at once.
struct GroupHooks {
  std::function<void(GroupState, const std::string&)> on_state;
  std::function<void(const ProgressWatch::Overdue&)> on_overdue;
};

class NcclCommunicator final : public Communicator,
                               public Supervised,
                               public std::enable_shared_from_this<NcclCommunicator> {
 public:
  /// Begins to form it; returns at once. The libraries and the supervisor must outlive it.
  static std::shared_ptr<NcclCommunicator> Form(const CudaApi& cuda, const NcclApi& nccl,
                                                Supervisor& supervisor, GroupSpec spec,
                                                GroupHooks hooks = {});
  ~NcclCommunicator() override;

  /// Blocks until it is formed. kFenced: stopped meanwhile, or not formed in time, with the reason.
  Status AwaitReady();
  /// Blocks until nothing of it is left; ok also after a stop.
  void AwaitReleased();
  Supervisor::Id id() const { return id_; }
  CudaStream stream() const { return stream_; }
  RankProgress progress();

  StatusOr<std::shared_ptr<Work>> Start(std::span<const Operation> operations) override;
  void Stop(const std::string& reason) override;
  Status Release() override;
  std::uint64_t seq() const override { return seq_; }
  int rank() const override { return spec_.rank; }
  int size() const override { return spec_.size; }

  // Functions for the supervisor.
  int device() const override { return spec_.device; }
  void Wake(const std::string& reason) override;
  void Tell(GroupState state, const std::string& text) override;
  Status Watch(Instant now, std::optional<Instant>& again) override;
  Status Init() override;
  Status Revoke() override;
  Status Finalize() override;
  Status Destroy() override;
  void AbortTogether(std::span<Supervised* const> all) override;

 private:
  friend class NcclWork;
  NcclCommunicator(const CudaApi& cuda, const NcclApi& nccl, Supervisor& supervisor, GroupSpec spec,
                   GroupHooks hooks);

  std::string Name() const;
  /// Asks for the state until it is no longer in progress, or, where `leaves`, until a stop.
  Status Settle(const std::string& doing, bool leaves);
  Status Enqueue(std::span<const Operation> operations);
  NcclResult CallOne(const Operation& operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(device_mutex_);
  /// Ok while it is ready and was not stopped.
  Status Open();
  /// Stops the group for what a library said of it; what all its callers get from then on.
  Status Fail(const Status& why);
  Status StoppedError() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Takes what has ended off the list, with its event.
  void CollectEnded(Instant now);
  Status MakeRoom();

  const CudaApi& cuda_;
  const NcclApi& nccl_;
  Supervisor& supervisor_;
  const GroupSpec spec_;
  const GroupHooks hooks_;
  std::atomic<Supervisor::Id> id_{0};
  CudaStream stream_ = nullptr;
  std::atomic<std::uint64_t> seq_{0};

  Mutex start_mutex_;  // serialises starts; before device_mutex_
  Mutex& device_mutex_;  // before mutex_
  NcclComm comm_ ABSL_GUARDED_BY(device_mutex_) = nullptr;
  bool aborted_ ABSL_GUARDED_BY(device_mutex_) = false;

  Mutex mutex_;
  CondVar changed_;
  GroupState state_ ABSL_GUARDED_BY(mutex_) = GroupState::kForming;
  std::optional<std::string> stopped_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<class NcclWork>> outstanding_ ABSL_GUARDED_BY(mutex_);
  ProgressWatch watch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::train
