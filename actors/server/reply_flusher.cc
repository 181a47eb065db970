#include "actors/server/reply_flusher.h"

#include <pthread.h>

#include "runtime/base/signals_blocked.h"

namespace troupe::actors {

ReplyFlusher::ReplyFlusher() {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Main(); });
}

ReplyFlusher::~ReplyFlusher() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  thread_.join();
}

void ReplyFlusher::Main() {
  pthread_setname_np(pthread_self(), "troupe-replies");
  int idle_ticks = 0;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (exposed_ == nullptr && ++idle_ticks >= kIdleTicksToSleep) {
      asleep_ = true;
      wake_.wait(lock, [this] { return stopping_ || !asleep_; });
      idle_ticks = 0;
    }
    const CallerConnection* const before = exposed_.get();
    wake_.wait_for(lock, kTick, [this] { return stopping_; });
    if (before == nullptr || exposed_.get() != before) continue;
    idle_ticks = 0;
    std::shared_ptr<CallerConnection> peer = exposed_;
    lock.unlock();
    peer->Flush();
    lock.lock();
    if (exposed_ != peer) left_ = std::move(peer);
  }
}

}  // namespace troupe::actors
