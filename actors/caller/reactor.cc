#include "actors/caller/reactor.h"

#include <absl/strings/str_format.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "actors/caller/channel.h"
#include "actors/caller/failure_watch.h"
#include "actors/caller/wait_progress.h"
#include "actors/net/cpu_budget.h"
#include "actors/net/now.h"
#include "runtime/base/check.h"

namespace troupe::actors {
namespace {

constexpr Duration kSignalSlice = std::chrono::milliseconds(50);
constexpr std::uint32_t kWaitsPerCpuCheck = 4096;
constexpr std::size_t kSlotsPerLock = 1024;  // others get a turn
constexpr std::uint64_t kLeaderWakeId = 0;

// The reactor and the fork generation it was made in, one word, so that both change together: user
// space pointers have 48 bits. In a child the generation differs, and the parent's is left alone.
constexpr int kPointerBits = 48;
constexpr std::uint64_t kGenerationMask = 0xFFFF;
std::atomic<std::uint64_t> the_reactor{0};
std::uint64_t Pack(CallReactor* reactor, std::uint32_t generation) {
  return reinterpret_cast<std::uintptr_t>(reactor) | (generation & kGenerationMask) << kPointerBits;
}
CallReactor* PointerOf(std::uint64_t packed) {
  return reinterpret_cast<CallReactor*>(packed & ((std::uint64_t{1} << kPointerBits) - 1));
}
std::uint32_t GenerationOf(std::uint64_t packed) {
  return static_cast<std::uint32_t>(packed >> kPointerBits);
}

void FutexWake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void FutexWait(std::atomic<std::uint32_t>& word, Duration most) {
  timespec t{};
  t.tv_sec = static_cast<time_t>(most / std::chrono::seconds(1));
  t.tv_nsec = static_cast<long>((most % std::chrono::seconds(1)).count());
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, nullptr, 0);
}

void Ring(int event_fd) {
  const std::uint64_t one = 1;
  (void)!::write(event_fd, &one, sizeof one);
}

// Before main(): what makes answers below this room finds the reactor of its process by it.
[[maybe_unused]] const bool kKnown =
    Completions::SetSource([]() -> Completions& { return CallReactor::Current(); });

std::string RandomHex16() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) {
    bits = static_cast<std::uint64_t>(Now().time_since_epoch().count()) ^
           static_cast<std::uint64_t>(::getpid()) << 40;
  }
  return absl::StrFormat("%016x", bits);
}

}  // namespace

void CallReactor::Promote(GateMember& member) {
  Waiter& waiter = static_cast<Waiter&>(member);
  waiter.word.fetch_or(Waiter::kPromoted, std::memory_order_release);
  FutexWake(waiter.word);
}

CallReactor* CallReactor::Existing() {
  const std::uint64_t seen = the_reactor.load(std::memory_order_acquire);
  return GenerationOf(seen) == (ForkGuard::generation() & kGenerationMask) ? PointerOf(seen)
                                                                           : nullptr;
}

CallReactor& CallReactor::Current() {
  ForkGuard::Install();
  const std::uint32_t generation = ForkGuard::generation();
  std::uint64_t seen = the_reactor.load(std::memory_order_acquire);
  if (GenerationOf(seen) == (generation & kGenerationMask)) return *PointerOf(seen);
  CallReactor* made = new CallReactor;
  if (the_reactor.compare_exchange_strong(seen, Pack(made, generation))) {
    // Lives as long as the process; a leak checker cannot read the packed pointer.
    static std::atomic<CallReactor*> reachable;
    reachable = made;
    return *made;
  }
  delete made;  // another thread of this process was first
  return *PointerOf(seen);
}

CallReactor::CallReactor()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      leader_wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      background_wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      incarnation_(RandomHex16()),
      polling_{SpinPolicy(SpinningAllowed())} {
  TROUPE_CHECK(epoll_.get() >= 0 && leader_wake_.get() >= 0 && background_wake_.get() >= 0,
               std::string("no descriptor left for the call reactor: ") + strerror(errno));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kLeaderWakeId;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, leader_wake_.get(), &event);
}

// ---- waiting ---------------------------------------------------------------------------------

WaitResult CallReactor::Wait(const WaitRequest& request, WaitHost& host) {
  WaitProgress progress(request.slots, request.slot_count, request.needed, request.failures);
  if (progress.Satisfied()) return WaitResult::kDone;
  progress.ForPending([](Answer* slot) { slot->Ask(); });
  if (stranded_count_.load(std::memory_order_relaxed) != 0) FlushStranded();
  Waiter self;
  bool leading;
  {
    MutexLock lock(mutex_);
    leading = gate_.TryLead(self);
  }
  if (leading) {
    const bool poll_only = request.deadline != Instant::max() && request.deadline <= Now();
    if (poll_only) PollOnce(0);
    const bool done = poll_only ? progress.Satisfied() : SpinRead(request, progress);
    if (done || poll_only) {
      MutexLock lock(mutex_);
      LeaveLocked(self);
      return done ? WaitResult::kDone : WaitResult::kTimeout;
    }
  }
  {
    MutexLock lock(mutex_);
    progress.Hang(self);
    if (!leading) leading = gate_.TryLead(self);
    if (!leading) gate_.Follow(self);
  }
  host.Suspend();
  const WaitResult result = Block(request.deadline, progress, self, leading, host);
  {
    MutexLock lock(mutex_);
    progress.Unhang();
    LeaveLocked(self);
  }
  if (result == WaitResult::kInterrupted) return result;
  const Instant before = Now();
  host.Resume();
  costly_return_.store(Now() - before > SpinPolicy::kCostlyReturn, std::memory_order_relaxed);
  return result;
}

WaitResult CallReactor::Block(Instant deadline, WaitProgress& progress, Waiter& self, bool leading,
                              WaitHost& host) {
  const bool sliced = host.HandlesSignals();
  Instant slice_end = sliced ? Now() + kSignalSlice : Instant::max();
  while (!progress.Satisfied()) {
    if (progress.Loose()) {
      MutexLock lock(mutex_);
      progress.Unhang();
      progress.Hang(self);
      continue;
    }
    const Instant now = Now();
    if (now >= deadline) return WaitResult::kTimeout;
    if (now >= slice_end) {
      host.Resume();
      if (host.Interrupted()) return WaitResult::kInterrupted;
      host.Suspend();
      slice_end = Now() + kSignalSlice;
      continue;
    }
    const Instant until = std::min(deadline, slice_end);
    const Duration most = until == Instant::max() ? std::chrono::hours(1) : until - now;
    if (leading) {
      const std::int64_t ms = (most.count() + 999'999) / 1'000'000;
      PollOnce(static_cast<int>(std::min<std::int64_t>(ms, INT_MAX)));
      if (errno == EINTR && sliced) slice_end = Instant::min();
    } else {
      errno = 0;
      Follow(self, most);
      if (errno == EINTR && sliced) slice_end = Instant::min();
      MutexLock lock(mutex_);
      self.word.store(0, std::memory_order_relaxed);
      leading = gate_.Leads(self);
    }
  }
  return WaitResult::kDone;
}

void CallReactor::Follow(Waiter& self, Duration most) { FutexWait(self.word, most); }

bool CallReactor::SpinRead(const WaitRequest& request, WaitProgress& progress) {
  SpinPolicy& spin = polling_.spin;
  if (++polling_.waits_to_recheck >= kWaitsPerCpuCheck) {
    polling_.waits_to_recheck = 0;
    const bool allowed = SpinningAllowed();
    if (allowed != spin.allowed()) spin = SpinPolicy(allowed);
  }
  spin.BlockingIsCostly(costly_return_.load(std::memory_order_relaxed));
  if (request.channel_count == 0 || !spin.ShouldSpin()) return false;
  const Instant start = Now();
  Instant last = start;
  while (true) {
    for (int i = 0; i < 4; ++i) {
      Channel* channel = request.channels[polling_.turn++ % request.channel_count];
      if (channel->Read() && progress.Satisfied()) {
        spin.Hit();
        return true;
      }
    }
    ::sched_yield();
    const Instant now = Now();
    if (spin.Contended(now - last)) return progress.Satisfied();
    if (now - start >= spin.budget()) {
      spin.Miss();
      return false;
    }
    last = now;
  }
}

void CallReactor::PollOnce(int timeout_ms) {
  epoll_event events[64];
  const int count = ::epoll_wait(epoll_.get(), events, 64, timeout_ms);
  if (count < 0) return;  // EINTR: the caller looks at errno
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 == kLeaderWakeId) {
      std::uint64_t ignored;
      (void)!::read(leader_wake_.get(), &ignored, sizeof ignored);
      continue;
    }
    const std::shared_ptr<Channel> channel = Find(events[i].data.u64);
    if (channel == nullptr) continue;
    if ((events[i].events & EPOLLOUT) != 0) channel->Flush();
    if ((events[i].events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) channel->Read();
  }
  errno = 0;
}

// ---- who waits for what ----------------------------------------------------------------------

void CallReactor::NotifyAll(const AnswerList& finished, bool as_leader) {
  for (const AnswerRef& slot : finished) Notify(slot.get(), as_leader);
}

void CallReactor::Notify(Answer* slot, bool as_leader) {
  MutexLock lock(mutex_);
  WaitNode** at = &slot->waiters;
  while (WaitNode* node = *at) {
    if (node->failures != nullptr) {
      at = &node->next;
      Waiter* const waiter = slot->failed() ? node->failures->Meet() : nullptr;
      if (waiter != nullptr) WakeLocked(*waiter, as_leader);
      continue;
    }
    if (node->waiter == nullptr) {
      *at = node->next;
      completions_.push_back(std::move(node->completion));
      delete node;
      --futures_waiting_;
      WakeBackgroundLocked(true);
      continue;
    }
    at = &node->next;
    WakeLocked(*node->waiter, as_leader);
  }
}

void CallReactor::WakeLocked(Waiter& waiter, bool as_leader) {
  if (gate_.Leads(waiter)) {
    if (!as_leader) Ring(leader_wake_.get());
    return;
  }
  waiter.word.fetch_or(Waiter::kNotified, std::memory_order_release);
  FutexWake(waiter.word);
}

void CallReactor::WatchFailures(Answer* const* slots, std::size_t count, FailureWatch& failures) {
  failures.Reserve(count);
  for (std::size_t next = 0; next < count && !failures.met();) {
    MutexLock lock(mutex_);
    for (const std::size_t end = std::min(count, next + kSlotsPerLock); next < end; ++next)
      failures.Hang(slots[next]);
  }
}

void CallReactor::UnwatchFailures(FailureWatch& failures) {
  for (bool more = true; more;) {
    AnswerList loose;
    MutexLock lock(mutex_);
    more = failures.UnhangSome(kSlotsPerLock, &loose);
  }
}

void CallReactor::LeaveLocked(GateMember& member) {
  const bool vacant = gate_.Leave(member, *this);
  if (vacant && background_.state == BackgroundState::kParked) WakeBackgroundLocked(true);
}

bool CallReactor::OnDone(Answer* slot, std::unique_ptr<Completion> completion) {
  slot->Ask();
  MutexLock lock(mutex_);
  if (background_.stopping) return false;
  StartBackgroundLocked();
  auto* node = new WaitNode;
  node->completion = std::move(completion);
  node->next = slot->waiters;
  slot->waiters = node;
  ++futures_waiting_;
  if (!slot->Watch() && slot->waiters == node) {
    slot->waiters = node->next;
    completions_.push_back(std::move(node->completion));
    delete node;
    --futures_waiting_;
  }
  WakeBackgroundLocked(true);
  return true;
}

bool CallReactor::Complete(Answer* slot, std::uint16_t flags, std::string_view bytes) {
  if (!slot->Claim()) return false;
  slot->Fill(flags, bytes);
  if (slot->Finish()) Notify(slot, false);
  return true;
}

void CallReactor::Post(std::unique_ptr<Completion> completion) {
  MutexLock lock(mutex_);
  if (background_.stopping) {
    (void)
        completion.release();  // left alone: its destructor may need the interpreter that is going
    return;
  }
  completions_.push_back(std::move(completion));
  StartBackgroundLocked();
  WakeBackgroundLocked(true);
}

}  // namespace troupe::actors
