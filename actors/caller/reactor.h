// All call I/O of this process, done by whichever thread waits.
//
// One per process id, made by the first channel or wait and never carried over a fork. Wait is the
// heart: the thread takes the leader gate if it is vacant, polls its own channel for at most 30 us
// while it keeps the GIL, then lets go of the GIL and blocks on all channels; otherwise it follows
// until its slot is done or it is promoted. The leader reads *all* channels, so that two processes
// that wait for each other's sockets never deadlock. A background thread takes a vacant gate
// (watch_policy.h), completes futures, flushes stranded frames and ends grace periods.
//
// Thread-safe. Wait blocks; Connect's callers aside nothing else does.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "actors/core/policy/leader_gate.h"
#include "actors/core/policy/spin_policy.h"
#include "actors/core/policy/watch_policy.h"
#include "actors/net/fork_guard.h"
#include "actors/slots/answer.h"
#include "actors/slots/completions.h"
#include "actors/slots/waiter.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace troupe::actors {

class Channel;
class FailureWatch;
class WaitProgress;

struct WaitRequest {
  Answer* const* slots = nullptr;
  std::size_t slot_count = 0;
  std::size_t needed = 1;              // how many must be done
  Channel* const* channels = nullptr;  // channels of their answers: polled before blocking
  std::size_t channel_count = 0;
  Instant deadline = Instant::max();
  FailureWatch* failures = nullptr;  // set: ends it too, as if all were done (WatchFailures)
};
enum class WaitResult { kDone, kTimeout, kInterrupted };

class CallReactor final : public Completions {
 public:
  /// This process's reactor; after a fork the child gets a new one.
  static CallReactor& Current();
  /// Ends the background thread of this process's reactor, if there is one: before the interpreter
  /// goes away. Waiting still works afterwards, futures and callbacks do not.
  static void StopCurrent();

  /// Blocks until `needed` slots are done, the deadline, or an interruption. A deadline in the past
  /// reads what is there and returns.
  WaitResult Wait(const WaitRequest& request, WaitHost& host);
  /// `failures` meets the errors among the slots from now on, also those that are there. Until
  /// UnwatchFailures, which is its last.
  void WatchFailures(Answer* const* slots, std::size_t count, FailureWatch& failures);
  void UnwatchFailures(FailureWatch& failures);
  /// Runs `completion` on the background thread once `slot` is done. False: the background thread
  /// was stopped, and the completion is dropped.
  bool OnDone(Answer* slot, std::unique_ptr<Completion> completion) override;
  /// Runs it there as soon as may be.
  void Post(std::unique_ptr<Completion> completion) override;
  /// Answers a slot that belongs to no channel (a put, a group that is ready); false: it had been.
  bool Complete(Answer* slot, std::uint16_t flags, std::string_view bytes) override;
  /// Writes all frames that were batched and not written yet.
  void FlushStranded();
  /// Cancels the calls of all channels that the call of that number of this process made
  /// (Answer::started_by), and what those started.
  void CancelStartedBy(std::uint64_t call);
  /// Reads `channel` without blocking, if no other thread leads.
  void Drain(Channel& channel);

  std::uint64_t NextLocalId() override {
    return next_local_.fetch_add(1, std::memory_order_relaxed);
  }
  /// 16 hex digits that tell this process from all others.
  const std::string& incarnation() const override { return incarnation_; }

  // For Channel (reactor_channels.cc):
  std::uint64_t NextChannelId() { return next_channel_.fetch_add(1, std::memory_order_relaxed); }
  Status Add(const std::shared_ptr<Channel>& channel);
  void Remove(std::uint64_t channel_id);
  Status Watch(Channel& channel);
  void Unwatch(Channel& channel);
  void WatchWrites(Channel& channel, bool on);
  void MarkStranded(std::uint64_t channel_id);
  void SetGrace(std::uint64_t channel_id, Duration grace);
  /// Counts a channel, up or down, that must be read though nobody may be waiting.
  void Expect(bool more);
  /// After Answer::Finish returned true.
  void Notify(Answer* slot, bool as_leader);
  /// After FinishInto, for all that it collected.
  void NotifyAll(const AnswerList& finished, bool as_leader);

 private:
  CallReactor();
  ~CallReactor() override = default;  // never runs: a reactor lives as long as its process

  friend class LeaderGate;
  void Promote(GateMember& member);  // the gate's sink
  static CallReactor* Existing();
  bool SpinRead(const WaitRequest& request, WaitProgress& progress);
  WaitResult Block(Instant deadline, WaitProgress& progress, Waiter& self, bool leading,
                   WaitHost& host);
  void PollOnce(int timeout_ms);
  void Follow(Waiter& self, Duration most);
  void LeaveLocked(GateMember& member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeLocked(Waiter& waiter, bool as_leader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Channel> Find(std::uint64_t channel_id);
  std::vector<std::shared_ptr<Channel>> TakeStranded();

  // background.cc
  void StartBackgroundLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BackgroundMain();
  /// These let go of the mutex in between.
  bool RunDueLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WatchSocketsLocked(GateMember& self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PauseLocked(GateMember& self, bool tail_seen) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeBackgroundLocked(bool even_if_ticking) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// How the leader polls; touched by no other thread.
  struct Polling {
    SpinPolicy spin;
    std::uint64_t turn = 0;
    std::uint32_t waits_to_recheck = 0;
  };
  enum class BackgroundState { kAbsent, kBusy, kTicking, kParked, kWatching, kStopped };
  struct Background {
    BackgroundState state = BackgroundState::kAbsent;
    bool stopping = false;
    WatchPolicy watch;
    CondVar idle;  // ends its sleep
  };

  GuardedFd epoll_;
  GuardedFd leader_wake_;      // ends the leader's epoll_wait
  GuardedFd background_wake_;  // ends the background thread's poll
  std::string incarnation_;
  std::atomic<std::uint64_t> next_channel_{1};
  std::atomic<std::uint64_t> next_local_{1};
  std::atomic<std::size_t> stranded_count_{0};
  std::atomic<bool> costly_return_{false};
  Polling polling_;
  std::thread background_thread_;  // started once, with the mutex held; StopCurrent joins it

  Mutex mutex_;
  LeaderGate gate_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, std::shared_ptr<Channel>> channels_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> stranded_ ABSL_GUARDED_BY(mutex_);
  std::multimap<Instant, std::uint64_t> graces_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Completion>> completions_ ABSL_GUARDED_BY(mutex_);
  std::size_t futures_waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // and channels by Expect
  Background background_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::actors
