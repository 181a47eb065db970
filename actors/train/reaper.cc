#include "actors/train/reaper.h"

#include <utility>

#include "runtime/base/signals_blocked.h"

namespace troupe::train {

Reaper::~Reaper() {
  std::list<Running> rest;
  for (;;) {
    std::thread thread;
    {
      MutexLock lock(mutex_);
      if (running_.empty()) return;
      thread = std::move(running_.front().thread);
    }
    thread.join();
    MutexLock lock(mutex_);
    running_.pop_front();
  }
}

void Reaper::Start(std::function<void()> call) {
  JoinReturned();
  const SignalsBlocked blocked;
  MutexLock lock(mutex_);
  Running& running = running_.emplace_back();
  running.thread = std::thread([this, &running, call = std::move(call)] {
    call();
    MutexLock done(mutex_);
    running.returned = true;
  });
}

void Reaper::JoinReturned() {
  std::list<Running> returned;
  {
    MutexLock lock(mutex_);
    for (auto at = running_.begin(); at != running_.end();) {
      const auto next = std::next(at);
      if (at->returned) returned.splice(returned.end(), running_, at);
      at = next;
    }
  }
  for (auto& running : returned) running.thread.join();
}

}  // namespace troupe::train
