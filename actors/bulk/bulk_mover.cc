#include "actors/bulk/bulk_mover.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "actors/net/call_dial.h"
#include "actors/net/now.h"
#include "actors/net/tls_loop.h"
#include "runtime/async/deadline.h"
#include "runtime/base/log.h"
#include "runtime/base/signals_blocked.h"

namespace troupe::actors {
namespace {

constexpr std::uint64_t kMoverWakeId = 1;
constexpr std::uint32_t kReads = EPOLLIN;
constexpr int kLongestWaitMs = 60000;

std::atomic<BulkMover*> the_mover{nullptr};
Mutex making_mover;

}  // namespace

BulkMover* BulkMover::Current() {
  const auto usable = [](BulkMover* mover) {
    return mover != nullptr && mover->generation_ == ForkGuard::generation();
  };
  BulkMover* mover = the_mover.load(std::memory_order_acquire);
  if (usable(mover)) return mover;
  ForkGuard::Install();
  const MutexLock lock(making_mover);
  mover = the_mover.load(std::memory_order_acquire);
  if (usable(mover)) return mover;
  auto* made = new BulkMover;
  if (made->epoll_.get() < 0 ||
      !made->Watch(made->wake_.get(), kMoverWakeId, kReads, /*add=*/true)) {
    delete made;
    return nullptr;
  }
  the_mover.store(made, std::memory_order_release);
  const SignalsBlocked blocked;
  made->thread_ = std::thread([made] { made->Run(); });
  return made;
}

BulkMover::BulkMover()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void BulkMover::Post(std::function<void()> work) {
  bool first = false;
  {
    const MutexLock lock(mutex_);
    first = posted_.empty();
    posted_.push_back(std::move(work));
  }
  const std::uint64_t one = 1;
  if (first) (void)!::write(wake_.get(), &one, sizeof one);
}

void BulkMover::StopCurrent() {
  BulkMover* const mover = the_mover.load(std::memory_order_acquire);
  if (mover == nullptr || mover->generation_ != ForkGuard::generation() ||
      !mover->thread_.joinable())
    return;
  mover->Post([mover] {
    const MutexLock lock(mover->mutex_);
    mover->stopping_ = true;
  });
  mover->thread_.join();
}

bool BulkMover::RunPosted() {
  std::uint64_t ignored;
  // before the look: who posts after it writes again
  (void)!::read(wake_.get(), &ignored, sizeof ignored);
  std::vector<std::function<void()>> posted;
  {
    const MutexLock lock(mutex_);
    posted.swap(posted_);
  }
  // Work may serve a link before the next one is done
  for (const std::function<void()>& work : posted) work();
  ++round_;
  const MutexLock lock(mutex_);
  return !stopping_;
}

bool BulkMover::Watch(int fd, std::uint64_t id, std::uint32_t events, bool add) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return ::epoll_ctl(epoll_.get(), add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) == 0;
}

// ---- links at the actor's side ----------------------------------------------------------------

void BulkMover::Admit(CallStream stream) {
  auto shared = std::make_shared<CallStream>(std::move(stream));
  Post([this, shared] {
    const std::uint64_t id = next_id_++;
    if (!Watch(shared->fd(), id, kReads | EPOLLRDHUP, /*add=*/true)) return;
    strangers_.emplace(id, Stranger{std::move(*shared), {}, {}});
    if (strangers_.size() > kWaitingMax) strangers_.erase(strangers_.begin());
    OnStranger(id, kReads);  // the socket does not signal bytes that came with the handshake's end
  });
}

/// Reads the hello of a link, and nothing that comes later.
void BulkMover::OnStranger(std::uint64_t id, std::uint32_t events) {
  const auto found = strangers_.find(id);
  if (found == strangers_.end()) return;
  Stranger& stranger = found->second;
  if (!stranger.session.IsNil()) {  // waits to be claimed, and has ended
    strangers_.erase(found);
    return;
  }
  char bytes[2 * TlsPipe::kRecordBytesMax];
  const IoResult got = stranger.stream.TryRead(bytes, sizeof bytes);
  if (got.outcome == IoOutcome::kEnded) {
    strangers_.erase(found);
    return;
  }
  if (got.outcome == IoOutcome::kWouldBlock) {
    if ((events & EPOLLRDHUP) != 0) strangers_.erase(found);
    return;
  }
  stranger.came.append(bytes, got.bytes);
  if (stranger.came.size() < kBulkFrameBytes) return;
  const StatusOr<BulkFrame> hello = ReadBulkFrame(stranger.came);
  if (!hello.ok() || hello->word != BulkWord::kHello) {
    Log(LogLevel::kWarning, "a link for large values was refused",
        {{"who", stranger.stream.Peer()}, {"why", "it began with no hello"}});
    strangers_.erase(found);
    return;
  }
  stranger.session = hello->session;
  stranger.came.erase(0, kBulkFrameBytes);
  Watch(stranger.stream.fd(), id, EPOLLRDHUP, /*add=*/false);
  TryClaim(id, stranger);
}

bool BulkMover::TryClaim(std::uint64_t id, Stranger& stranger) {
  for (const std::shared_ptr<BulkRoute>& each : roads_) {
    const std::shared_ptr<BulkRoute> road = each;  // may end with this
    if (road->identity.empty() || !(road->session == stranger.session)) continue;
    if (road->identity != stranger.stream.identity()) continue;
    const std::string came = std::move(stranger.came);
    CallStream stream = std::move(stranger.stream);
    strangers_.erase(id);
    Link(road, std::move(stream), came, {});
    return true;
  }
  return false;
}

void BulkMover::Claim(const std::shared_ptr<BulkRoute>& road) {
  roads_.insert(road);
  for (auto& [id, stranger] : strangers_) {
    if (stranger.session == road->session && TryClaim(id, stranger)) return;
  }
}

// ---- links at the caller's side ---------------------------------------------------------------

void BulkMover::Dial(const std::shared_ptr<BulkRoute>& road, RedialPolicy::Step step) {
  road->dialling = true;
  BulkRoute::Way way = *road->way;
  way.target.objects = true;
  TlsLoop::Current().Spawn("dial for large values", Reach(this, road, std::move(way), step));
}

async::Task<void> BulkMover::Reach(BulkMover* mover, std::shared_ptr<BulkRoute> road,
                                   BulkRoute::Way way, RedialPolicy::Step step) {
  if (step.pause > Duration::zero()) co_await async::SleepFor(step.pause);
  std::function<bool()> wanted = [road] { return !road->over; };
  auto dialling =
      DialActor(std::move(way.target), std::move(way.identity), step.limit, std::move(wanted));
  StatusOr<CallStream> stream = co_await std::move(dialling);
  auto shared = std::make_shared<StatusOr<CallStream>>(std::move(stream));
  mover->Post([mover, road, shared] { mover->Reached(road, std::move(*shared)); });
}

void BulkMover::Reached(const std::shared_ptr<BulkRoute>& road, StatusOr<CallStream> stream) {
  road->dialling = false;
  if (road->over) return;
  if (!stream.ok()) return DialAgain(road, MessageOf(stream.status()));
  road->redial.Connected(Now());
  std::string hello;
  BulkFrame frame;
  frame.session = road->session;
  AppendBulkFrame(hello, frame);
  Link(road, *std::move(stream), {}, hello);
}

/// Dials again after the peer was out of reach for as long as calls wait for it. References wait
/// longer.
void BulkMover::DialAgain(const std::shared_ptr<BulkRoute>& road, const std::string& why) {
  road->redial.Welcomed();
  road->end.FailPulls(MakeError(ErrorCode::kConnection, why), /*refs=*/false);
  if (road->over || road->end.RefsSettled()) return Settle(road);
  RedialPolicy::Step step;
  step.pause = RedialPolicy::kPauseMax;
  step.limit = road->limit;
  Dial(road, step);
}

// ---- roads ------------------------------------------------------------------------------------

void BulkMover::Link(const std::shared_ptr<BulkRoute>& road, CallStream stream,
                     const std::string& came, const std::string& hello) {
  linked_.erase(road->id);
  more_.erase(road->id);
  road->id = next_id_++;
  road->watches_writes = false;
  const int fd = stream.fd();
  // A stranger was watched under another number.
  const bool watched =
      Watch(fd, road->id, kReads, /*add=*/true) || Watch(fd, road->id, kReads, /*add=*/false);
  linked_[road->id] = road;
  if (!road->end.Link(std::move(stream), came, hello, Now()) || !watched) return Lose(road);
  Serve(road);
}

void BulkMover::Kick(const std::shared_ptr<BulkRoute>& road) {
  if (road->over) return;
  roads_.insert(road);
  if (road->end.linked()) return Serve(road);
  if (road->way && !road->session.IsNil() && !road->dialling && road->end.WantsLink()) {
    RedialPolicy::Step step;
    step.limit = road->limit;
    Dial(road, step);
  }
}

void BulkMover::Serve(const std::shared_ptr<BulkRoute>& road) {
  const BulkLink::Went went = road->end.Run(Now(), round_);
  if (went == BulkLink::Went::kOver) return Lose(road);
  if (road->end.heard()) road->redial.Welcomed();
  if (went == BulkLink::Went::kMore) more_.insert(road->id);
  const bool writes = went == BulkLink::Went::kWrites;
  if (std::exchange(road->watches_writes, writes) != writes) {
    Watch(road->end.fd(), road->id, kReads | (writes ? static_cast<std::uint32_t>(EPOLLOUT) : 0u),
          /*add=*/false);
  }
  if (went == BulkLink::Went::kIdle) Settle(road);
}

/// Drops a link that ended: callers make another one, while there is something for it to do.
void BulkMover::Lose(const std::shared_ptr<BulkRoute>& road) {
  linked_.erase(road->id);
  more_.erase(road->id);
  road->id = 0;
  road->end.Unlink(Now());
  Settle(road);
  if (road->over || !road->way || !road->end.WantsLink() || road->dialling) return;
  const std::optional<RedialPolicy::Step> step = road->redial.Lost(Now());
  if (step) return Dial(road, *step);
  DialAgain(road, road->end.why());
}

void BulkMover::End(const std::shared_ptr<BulkRoute>& road, const Status& why) {
  if (road->over || std::exchange(road->ended, true)) return;
  road->copies.clear();
  if (road->end.EndCalls(why, Now())) return Finish(road);
  Kick(road);
}

void BulkMover::Settle(const std::shared_ptr<BulkRoute>& road) {
  if (road->ended && !road->over && road->end.Over()) Finish(road);
}

void BulkMover::Finish(const std::shared_ptr<BulkRoute>& road) {
  const std::shared_ptr<BulkRoute> keep = road;  // may belong to the set that it is taken out of
  keep->over = true;
  linked_.erase(keep->id);
  more_.erase(keep->id);
  keep->end.GiveUp(MakeError(ErrorCode::kConnection, "its session is over"));
  roads_.erase(keep);
}

// ---- the thread -------------------------------------------------------------------------------

int BulkMover::NextTimeoutMs() {
  if (!more_.empty()) return 0;
  std::optional<Instant> next;
  for (const std::shared_ptr<BulkRoute>& road : roads_) {
    const std::optional<Instant> deadline = road->end.Deadline();
    if (deadline && (!next || *deadline < *next)) next = deadline;
  }
  if (!next) return -1;
  return static_cast<int>(std::clamp<std::int64_t>(Millis(*next - Now()) + 1, 0, kLongestWaitMs));
}

void BulkMover::Expire() {
  const Instant now = Now();
  std::vector<std::shared_ptr<BulkRoute>> due;
  for (const std::shared_ptr<BulkRoute>& road : roads_) {
    const std::optional<Instant> deadline = road->end.Deadline();
    if (deadline && *deadline <= now) due.push_back(road);
  }
  for (const std::shared_ptr<BulkRoute>& road : due) {
    if (road->end.Expire(now)) Lose(road);
    Settle(road);
  }
}

void BulkMover::AwaitTaken(Duration quiet, Duration most) {
  BulkMover* const mover = the_mover.load(std::memory_order_acquire);
  if (mover == nullptr || mover->generation_ != ForkGuard::generation()) return;
  const Instant until = Now() + most;
  {
    const MutexLock lock(mover->mutex_);
    mover->awaited_ = true;
    mover->all_taken_ = false;
  }
  mover->Post([] {});
  MutexLock lock(mover->mutex_);
  while (!mover->all_taken_ && Now() < until) {
    if (!mover->AwaitNewsLocked(std::min(Now() + quiet, until))) break;
  }
  mover->awaited_ = false;
}

/// Waits until `until`; true if more bytes were sent, or all was taken.
bool BulkMover::AwaitNewsLocked(Instant until) {
  const std::uint64_t given = given_;
  while (!all_taken_ && given_ == given) {
    const Instant now = Now();
    if (now >= until) return false;
    static_cast<void>(told_.WaitFor(mutex_, until - now));
  }
  return true;
}

void BulkMover::TellAwaiting() {
  const MutexLock lock(mutex_);
  if (!awaited_) return;
  bool all = true;
  std::uint64_t given = 0;
  for (const std::shared_ptr<BulkRoute>& road : roads_) {
    all = all && !road->end.AwaitsTaker();
    given += road->end.given_bytes();
  }
  if (all == all_taken_ && given == given_) return;
  all_taken_ = all;
  given_ = given;
  told_.NotifyAll();
}

void BulkMover::OnEvent(std::uint64_t id, std::uint32_t events) {
  if (id == kMoverWakeId) return;
  const auto found = linked_.find(id);
  if (found == linked_.end()) return OnStranger(id, events);
  const std::shared_ptr<BulkRoute> road = found->second;
  Serve(road);
}

void BulkMover::Run() {
  pthread_setname_np(pthread_self(), "troupe-bulk");
  epoll_event events[64];
  while (true) {
    const int count = ::epoll_wait(epoll_.get(), events, 64, NextTimeoutMs());
    if (count < 0 && errno != EINTR) return;
    // first: what an end may ask for now was said before it could hear of it
    if (!RunPosted()) return;
    for (int i = 0; i < count; ++i) OnEvent(events[i].data.u64, events[i].events);
    for (const std::uint64_t id : std::exchange(more_, {})) {
      const auto found = linked_.find(id);
      if (found == linked_.end()) continue;
      const std::shared_ptr<BulkRoute> road = found->second;
      Serve(road);
    }
    if (more_.empty()) Expire();
    TellAwaiting();
  }
}

}  // namespace troupe::actors
