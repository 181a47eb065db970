// The thread that writes replies held back by a long call: a batch that goes on to run another call
// while finished replies are unsent exposes its peer here, and a tick later they are flushed.
//
// Asleep without a deadline unless batches with held replies are running; the serving thread pays a
// lock per such batch and wakes it only when it was asleep. Woken it stays so for
// kIdleTicksToSleep, also where the batch was over before it ran: short batches, one after the
// other, do not wake it each.
#pragma once

#include <memory>
#include <thread>
#include <utility>

#include "actors/server/caller_connection.h"
#include "runtime/base/mutex.h"
#include "runtime/base/time.h"

namespace troupe::actors {

class ReplyFlusher {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(1);
  static constexpr int kIdleTicksToSleep = 16;

  ReplyFlusher();
  ~ReplyFlusher();

  void Expose(std::shared_ptr<CallerConnection> peer) {
    std::shared_ptr<CallerConnection> over;
    const MutexLock lock(mutex_);
    over.swap(left_);
    exposed_ = std::move(peer);
    if (std::exchange(asleep_, false)) wake_.NotifyOne();
  }
  void Cover() {
    std::shared_ptr<CallerConnection> over;
    const MutexLock lock(mutex_);
    over.swap(left_);
    exposed_.reset();
  }

 private:
  void Main();

  Mutex mutex_;
  CondVar wake_;
  std::shared_ptr<CallerConnection> exposed_ ABSL_GUARDED_BY(mutex_);
  // Covered while it was flushed: ended by the serving thread, as what a peer keeps for calls may
  // be its language's.
  std::shared_ptr<CallerConnection> left_ ABSL_GUARDED_BY(mutex_);
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace troupe::actors
