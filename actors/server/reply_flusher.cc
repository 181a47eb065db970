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
    const MutexLock lock(mutex_);
    stopping_ = true;
    wake_.NotifyOne();
  }
  thread_.join();
}

void ReplyFlusher::Main() {
  pthread_setname_np(pthread_self(), "troupe-replies");
  int idle_ticks = 0;
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (exposed_ == nullptr && ++idle_ticks >= kIdleTicksToSleep) {
      asleep_ = true;
      while (!stopping_ && asleep_) wake_.Wait(mutex_);
      idle_ticks = 0;
    }
    const CallerConnection* const before = exposed_.get();
    if (!stopping_) wake_.WaitFor(mutex_, kTick);  // woken early: flushed early
    if (before == nullptr || exposed_.get() != before) continue;
    idle_ticks = 0;
    std::shared_ptr<CallerConnection> peer = exposed_;
    lock.Unlock();
    peer->Flush();
    lock.Lock();
    if (exposed_ != peer) left_ = std::move(peer);
  }
}

}  // namespace troupe::actors
