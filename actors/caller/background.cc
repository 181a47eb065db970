// The background thread of a process's reactor: see watch_policy.h for when it does what.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "actors/caller/channel.h"
#include "actors/net/now.h"
#include "actors/caller/reactor.h"
#include "runtime/base/signals_blocked.h"

namespace troupe::actors {

void CallReactor::StartBackgroundLocked() {
  if (background_state_ != BackgroundState::kAbsent || stopping_) return;
  background_state_ = BackgroundState::kBusy;
  const SignalsBlocked blocked;
  background_ = std::thread([this] { BackgroundMain(); });
}

void CallReactor::StopCurrent() {
  CallReactor* reactor = Existing();
  if (reactor == nullptr) return;
  {
    std::lock_guard lock(reactor->mutex_);
    reactor->stopping_ = true;
    reactor->WakeBackgroundLocked(true);
  }
  if (reactor->background_.joinable()) reactor->background_.join();
}

void CallReactor::WakeBackgroundLocked(bool even_if_ticking) {
  switch (background_state_) {
    case BackgroundState::kWatching: {
      const std::uint64_t one = 1;
      (void)!::write(background_wake_.get(), &one, sizeof one);
      break;
    }
    case BackgroundState::kTicking:
      if (even_if_ticking) background_idle_.notify_one();
      break;
    case BackgroundState::kParked:
      background_idle_.notify_one();
      break;
    case BackgroundState::kAbsent:
    case BackgroundState::kBusy:
    case BackgroundState::kStopped:
      break;
  }
}

/// Runs completions and ends grace periods that are due. True: the lock was released for it.
bool CallReactor::RunDue(std::unique_lock<std::mutex>& lock) {
  std::vector<std::unique_ptr<Completion>> completions;
  completions.swap(completions_);
  std::vector<std::shared_ptr<Channel>> expired;
  if (!graces_.empty()) {
    const Instant now = Now();
    while (!graces_.empty() && graces_.begin()->first <= now) {
      const auto found = channels_.find(graces_.begin()->second);
      if (found != channels_.end()) expired.push_back(found->second);
      graces_.erase(graces_.begin());
    }
  }
  if (completions.empty() && expired.empty()) return false;
  background_state_ = BackgroundState::kBusy;
  lock.unlock();
  for (const std::unique_ptr<Completion>& completion : completions) completion->Run();
  completions.clear();
  for (const std::shared_ptr<Channel>& channel : expired) channel->GraceExpired();
  expired.clear();
  lock.lock();
  return true;
}

void CallReactor::BackgroundMain() {
  pthread_setname_np(pthread_self(), "troupe-calls");
  GateMember self;
  std::unique_lock lock(mutex_);
  bool tail_seen = false;  // stranded frames were there a tick ago
  while (!stopping_) {
    if (RunDue(lock)) continue;
    if (stranded_.empty()) {
      tail_seen = false;
    } else if (tail_seen) {
      tail_seen = false;
      background_state_ = BackgroundState::kBusy;
      lock.unlock();
      FlushStranded();
      lock.lock();
      continue;
    } else {
      tail_seen = true;
    }
    WatchPolicy::View view;
    view.turns = gate_.turns();
    view.vacant = gate_.vacant();
    view.futures_wait = futures_waiting_ != 0;
    view.stranded = tail_seen;
    switch (watch_.Next(view)) {
      case WatchPolicy::Step::kTick:
        background_state_ = BackgroundState::kTicking;
        background_idle_.wait_for(lock, WatchPolicy::kTick);
        break;
      case WatchPolicy::Step::kPark:
        background_state_ = BackgroundState::kParked;
        if (graces_.empty()) {
          background_idle_.wait(lock);
        } else {
          background_idle_.wait_for(
              lock, std::max<Duration>(graces_.begin()->first - Now(), WatchPolicy::kTick));
        }
        break;
      case WatchPolicy::Step::kWatch:
        WatchSockets(lock, self);
        break;
    }
    background_state_ = BackgroundState::kBusy;
  }
  background_state_ = BackgroundState::kStopped;
}

void CallReactor::WatchSockets(std::unique_lock<std::mutex>& lock, GateMember& self) {
  int timeout_ms = -1;
  if (!stranded_.empty()) {
    timeout_ms = static_cast<int>(WatchPolicy::kTick / std::chrono::milliseconds(1));
  } else if (!graces_.empty()) {
    const Duration left = std::max<Duration>(graces_.begin()->first - Now(), Duration::zero());
    timeout_ms = static_cast<int>(std::min<std::int64_t>(Millis(left) + 1, INT_MAX));
  }
  background_state_ = BackgroundState::kWatching;
  lock.unlock();
  pollfd watched[2] = {{epoll_.get(), POLLIN, 0}, {background_wake_.get(), POLLIN, 0}};
  const int ready = ::poll(watched, 2, timeout_ms);
  if (ready > 0 && watched[1].revents != 0) {
    std::uint64_t ignored;
    (void)!::read(background_wake_.get(), &ignored, sizeof ignored);
  }
  lock.lock();
  background_state_ = BackgroundState::kBusy;
  if (ready <= 0 || watched[0].revents == 0) return;
  if (!gate_.TryLead(self)) return;  // a caller came first and reads it
  lock.unlock();
  PollOnce(0);
  lock.lock();
  gate_.Leave(self, *this);
}

void CallReactor::SetGrace(std::uint64_t channel_id, Duration grace) {
  std::lock_guard lock(mutex_);
  graces_.emplace(Now() + grace, channel_id);
  WakeBackgroundLocked(true);
}

}  // namespace troupe::actors
