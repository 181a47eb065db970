// The background thread of a process's reactor: see watch_policy.h for when it does what.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "actors/caller/channel.h"
#include "actors/caller/reactor.h"
#include "actors/net/now.h"
#include "runtime/base/signals_blocked.h"

namespace troupe::actors {

void CallReactor::StartBackgroundLocked() {
  if (background_.state != BackgroundState::kAbsent || background_.stopping) return;
  background_.state = BackgroundState::kBusy;
  const SignalsBlocked blocked;
  background_thread_ = std::thread([this] { BackgroundMain(); });
}

void CallReactor::StopCurrent() {
  CallReactor* reactor = Existing();
  if (reactor == nullptr) return;
  {
    MutexLock lock(reactor->mutex_);
    reactor->background_.stopping = true;
    reactor->WakeBackgroundLocked(true);
  }
  if (reactor->background_thread_.joinable()) reactor->background_thread_.join();
}

void CallReactor::WakeBackgroundLocked(bool even_if_ticking) {
  switch (background_.state) {
    case BackgroundState::kWatching: {
      const std::uint64_t one = 1;
      (void)!::write(background_wake_.get(), &one, sizeof one);
      break;
    }
    case BackgroundState::kTicking:
      if (even_if_ticking) background_.idle.NotifyOne();
      break;
    case BackgroundState::kParked:
      background_.idle.NotifyOne();
      break;
    case BackgroundState::kAbsent:
    case BackgroundState::kBusy:
    case BackgroundState::kStopped:
      break;
  }
}

/// Runs completions and ends grace periods that are due. True: the lock was released for it.
bool CallReactor::RunDueLocked() {
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
  background_.state = BackgroundState::kBusy;
  mutex_.Unlock();
  for (const std::unique_ptr<Completion>& completion : completions) completion->Run();
  completions.clear();
  for (const std::shared_ptr<Channel>& channel : expired) channel->GraceExpired();
  expired.clear();
  mutex_.Lock();
  return true;
}

void CallReactor::BackgroundMain() {
  pthread_setname_np(pthread_self(), "troupe-calls");
  GateMember self;
  MutexLock lock(mutex_);
  bool tail_seen = false;  // stranded frames were there a tick ago
  while (!background_.stopping) {
    if (RunDueLocked()) continue;
    if (!stranded_.empty() && tail_seen) {
      tail_seen = false;
      background_.state = BackgroundState::kBusy;
      lock.Unlock();
      FlushStranded();
      lock.Lock();
      continue;
    }
    tail_seen = !stranded_.empty();
    PauseLocked(self, tail_seen);
    background_.state = BackgroundState::kBusy;
  }
  background_.state = BackgroundState::kStopped;
}

/// Until there is something to do, or to look for (watch_policy.h).
void CallReactor::PauseLocked(GateMember& self, bool tail_seen) {
  WatchPolicy::View view;
  view.turns = gate_.turns();
  view.vacant = gate_.vacant();
  view.futures_wait = futures_waiting_ != 0;
  view.stranded = tail_seen;
  switch (background_.watch.Next(view)) {
    case WatchPolicy::Step::kTick:
      background_.state = BackgroundState::kTicking;
      background_.idle.WaitFor(mutex_, WatchPolicy::kTick);
      return;
    case WatchPolicy::Step::kPark:
      background_.state = BackgroundState::kParked;
      if (graces_.empty()) {
        background_.idle.Wait(mutex_);
      } else {
        const Duration left = graces_.begin()->first - Now();
        background_.idle.WaitFor(mutex_, std::max<Duration>(left, WatchPolicy::kTick));
      }
      return;
    case WatchPolicy::Step::kWatch:
      return WatchSocketsLocked(self);
  }
}

void CallReactor::WatchSocketsLocked(GateMember& self) {
  int timeout_ms = -1;
  if (!stranded_.empty()) {
    timeout_ms = static_cast<int>(WatchPolicy::kTick / std::chrono::milliseconds(1));
  } else if (!graces_.empty()) {
    const Duration left = std::max<Duration>(graces_.begin()->first - Now(), Duration::zero());
    timeout_ms = static_cast<int>(std::min<std::int64_t>(Millis(left) + 1, INT_MAX));
  }
  background_.state = BackgroundState::kWatching;
  mutex_.Unlock();
  pollfd watched[2] = {{epoll_.get(), POLLIN, 0}, {background_wake_.get(), POLLIN, 0}};
  const int ready = ::poll(watched, 2, timeout_ms);
  if (ready > 0 && watched[1].revents != 0) {
    std::uint64_t ignored;
    (void)!::read(background_wake_.get(), &ignored, sizeof ignored);
  }
  mutex_.Lock();
  background_.state = BackgroundState::kBusy;
  if (ready <= 0 || watched[0].revents == 0) return;
  if (!gate_.TryLead(self)) return;  // a caller came first and reads it
  mutex_.Unlock();
  PollOnce(0);
  mutex_.Lock();
  gate_.Leave(self, *this);
}

void CallReactor::SetGrace(std::uint64_t channel_id, Duration grace) {
  MutexLock lock(mutex_);
  graces_.emplace(Now() + grace, channel_id);
  WakeBackgroundLocked(true);
}

}  // namespace troupe::actors
