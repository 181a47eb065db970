#include "actors/server/call_server.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <optional>
#include <utility>
#include <vector>

#include "actors/bulk/bulk_mover.h"
#include "actors/core/session/flow_control.h"
#include "actors/net/cpu_budget.h"
#include "actors/net/now.h"
#include "actors/server/call_listener.h"
#include "actors/server/reply_flusher.h"
#include "runtime/base/log.h"

namespace troupe::actors {
namespace {

constexpr std::uint64_t kListenerId = 0;
constexpr std::uint64_t kWakeId = 1;
constexpr int kSignalSliceMs =
    1000;  // EINTR is the rule; this is for a signal just before blocking
constexpr std::size_t kPeersMax = 4096;
constexpr Duration kResultsQuiet = std::chrono::seconds(5);  // from the last byte that went
constexpr Duration kResultsMost = std::chrono::seconds(60);  // from the end of serving
constexpr int kPollsAlone = 32;
constexpr int kPollsAmongMany = 1;

}  // namespace

class CallServer::Flusher : public ReplyFlusher {};

CallServer::CallServer()
    : generation_(ForkGuard::generation()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      spin_(SpinningAllowed()) {}

StatusOr<std::unique_ptr<CallServer>> CallServer::Listen(const std::string& path,
                                                         IdentitySource identity) {
  ForkGuard::Install();
  std::unique_ptr<CallServer> server(new CallServer);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeId;
  const int epoll = server->epoll_.get();
  const int wake = server->wake_.get();
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &event) != 0) {
    return MakeError(ErrorCode::kConnection, "cannot serve at " + path + ": out of descriptors");
  }
  TROUPE_ASSIGN(server->listener_,
                CallListener::Open(path, std::move(identity), epoll, kListenerId, wake));
  return server;
}

CallServer::~CallServer() {
  if (generation_ != ForkGuard::generation()) return;  // the parent's: its threads are not here
  if (listener_ != nullptr) listener_->CloseDoor();
  delete flusher_;
  for (const auto& [id, peer] : peers_) peer->Close();
}

CallServer::Flusher& CallServer::flusher() {
  if (flusher_ == nullptr) flusher_ = new Flusher;
  return *flusher_;
}

void CallServer::Stop() {
  stop_.store(true);
  const std::uint64_t one = 1;
  if (generation_ == ForkGuard::generation()) (void)!::write(wake_.get(), &one, sizeof one);
}

std::optional<CallServer::Ended> CallServer::CheckEnded() const {
  if (generation_ != ForkGuard::generation()) return Ended::kForked;
  if (stop_by_call_) return Ended::kStoppedByCall;
  if (stop_.load(std::memory_order_relaxed)) return Ended::kStopped;
  return std::nullopt;
}

CallServer::Ended CallServer::Serve(CallExecutor& executor) {
  stop_by_call_ = false;
  TakeFromDoor(executor);  // callers from before this thread served
  std::optional<Ended> ended;
  while (!(ended = CheckEnded())) {
    const bool look = MustLook();
    const bool ran = !look && !executor.RunsElsewhere() && Poll();
    polls_in_row_ = ran ? polls_in_row_ + 1 : 0;
    if (ran) continue;
    const int most_ms = look ? 0 : BlockLimitMs(executor.HandlesSignals());
    if ((ended = Handle(executor, most_ms, /*blocks=*/!look))) break;
  }
  if (*ended != Ended::kForked) EndAll(executor, *ended);
  return *ended;
}

/// Looks at all sockets now and then, so that one busy caller does not hide the others, nor a new
/// one.
bool CallServer::MustLook() const {
  return polls_in_row_ >= (peers_.size() > 1 ? kPollsAmongMany : kPollsAlone);
}

bool CallServer::Poll() {
  if (hot_ == nullptr || IsOver() || !spin_.ShouldSpin()) return false;
  const std::shared_ptr<CallerConnection> peer = hot_;
  const std::optional<IoResult> got = SpinFor(*peer);
  if (got) RunRead(*peer, *got);
  return got.has_value();
}

std::optional<CallServer::Ended> CallServer::Turn(CallExecutor& executor) {
  TakeFromDoor(executor);
  std::optional<Ended> ended = CheckEnded();
  if (!ended) ended = Handle(executor, 0, /*blocks=*/false);
  if (!ended) ended = CheckEnded();
  if (ended && *ended != Ended::kForked) EndAll(executor, *ended);
  return ended;
}

/// Runs what has come, waiting for it if it `blocks`. Something: serving is over.
std::optional<CallServer::Ended> CallServer::Handle(CallExecutor& executor, int most_ms,
                                                    bool blocks) {
  epoll_event events[64];
  std::shared_ptr<CallerConnection> hot;  // polled
  std::optional<IoResult> polled;
  if (blocks) {
    if (hot_ != nullptr && executor.RunsElsewhere() && spin_.ShouldSpin()) hot = hot_;
    executor.Suspend();
    if (hot != nullptr) polled = SpinFor(*hot);
  }
  const int count = ::epoll_wait(epoll_.get(), events, 64, polled ? 0 : most_ms);
  if (blocks) {
    const Instant woken = Now();
    executor.Resume();
    spin_.BlockingIsCostly(Now() - woken > SpinPolicy::kCostlyReturn);
    if (const std::optional<Ended> ended = CheckEnded()) return ended;
    if (polled) RunRead(*hot, *polled);
    if (generation_ != ForkGuard::generation()) return Ended::kForked;
  }
  if (sessions_.detached() != 0) ExpireSessions();
  const std::optional<Instant> paused_until = listener_->paused_until();
  if (paused_until && Now() >= *paused_until) Accept(executor);
  if (executor.Interrupted()) return Ended::kInterrupted;
  for (int i = 0; i < count && !stop_by_call_; ++i) {
    const std::uint64_t id = events[i].data.u64;
    if (id == kListenerId) {
      Accept(executor);
    } else if (id == kWakeId) {
      std::uint64_t ignored;
      (void)!::read(wake_.get(), &ignored, sizeof ignored);
      ResumePaused();
      TakeFromDoor(executor);
    } else if (const auto found = peers_.find(id); found != peers_.end()) {
      const std::shared_ptr<CallerConnection> peer = found->second;
      OnEvent(*peer, events[i].events);
    }
    if (generation_ != ForkGuard::generation()) return Ended::kForked;
  }
  return std::nullopt;
}

void CallServer::EndAll(CallExecutor& executor, Ended ended) {
  hot_.reset();
  for (const auto& [id, peer] : peers_) peer->Flush();
  if (ended != Ended::kInterrupted) {  // results that other hosts are to get of this process are
                                       // lost with it
    executor.Suspend();
    BulkMover::AwaitTaken(kResultsQuiet, kResultsMost);
    executor.Resume();
  }
  for (const std::shared_ptr<CallerConnection>& peer : sessions_.TakeAll()) {
    peer->EndSession();
    peer->session.reset();
  }
  for (const auto& [id, peer] : peers_) {
    peer->Flush();
    peer->Close();
    peer->session.reset();
  }
  peers_.clear();
}

int CallServer::BlockLimitMs(bool handles_signals) const {
  const int signals_ms = handles_signals ? kSignalSliceMs : -1;
  std::optional<Instant> expiry = sessions_.next_expiry();
  const std::optional<Instant> paused_until = listener_->paused_until();
  if (paused_until) expiry = std::min(expiry.value_or(Instant::max()), *paused_until);
  if (!expiry) return signals_ms;
  const std::int64_t left_ms = std::max<std::int64_t>(Millis(*expiry - Now()) + 1, 0);
  const auto expiry_ms = static_cast<int>(std::min<std::int64_t>(left_ms, INT_MAX));
  return handles_signals ? std::min(signals_ms, expiry_ms) : expiry_ms;
}

/// Something: bytes came, or the end.
std::optional<IoResult> CallServer::SpinFor(CallerConnection& peer) {
  const Instant start = Now();
  Instant last = start;
  while (!peer.paused()) {
    for (int i = 0; i < 4; ++i) {
      const IoResult got = peer.Read(limits_);
      if (got.outcome == IoOutcome::kWouldBlock) continue;
      spin_.Hit();
      return got;
    }
    ::sched_yield();
    const Instant now = Now();
    if (spin_.Contended(now - last)) return std::nullopt;
    if (now - start >= spin_.budget()) {
      spin_.Miss();
      return std::nullopt;
    }
    last = now;
  }
  return std::nullopt;
}

void CallServer::Accept(CallExecutor& executor) {
  listener_->Accept([&](CallStream stream) { Admit(std::move(stream), executor); });
}

/// nullptr: there are too many.
std::shared_ptr<CallerConnection> CallServer::Admit(CallStream stream, CallExecutor& executor) {
  if (peers_.size() >= kPeersMax) {
    Log(LogLevel::kWarning, "caller refused",
        {{"socket", path()}, {"who", stream.Peer()}, {"why", "4096 callers are connected"}});
    return nullptr;
  }
  auto peer =
      std::make_shared<CallerConnection>(std::move(stream), next_peer_, epoll_.get(), wake_.get());
  peer->session = executor.Open();
  peers_.emplace(next_peer_++, peer);
  return peer;
}

void CallServer::TakeFromDoor(CallExecutor& executor) {
  for (CallStream& stream : listener_->TakeFromDoor()) {
    const std::shared_ptr<CallerConnection> peer = Admit(std::move(stream), executor);
    // Calls may have come with the end of the handshake, which the socket does not signal.
    if (peer != nullptr) ReadAndRun(*peer);
    if (stop_by_call_ || generation_ != ForkGuard::generation()) return;
  }
}

void CallServer::OnEvent(CallerConnection& peer, std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) peer.Flush();
  if (peer.paused()) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) return Lose(peer);
    return ResumePaused();
  }
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) ReadAndRun(peer);
}

void CallServer::ReadAndRun(CallerConnection& peer) {
  const IoResult got = peer.Read(limits_);
  if (got.outcome != IoOutcome::kWouldBlock) RunRead(peer, got);
}

/// Bytes came: runs all whole calls among them. Or the end.
void CallServer::RunRead(CallerConnection& peer, const IoResult& got) {
  if (got.outcome == IoOutcome::kEnded) return Lose(peer);
  if (hot_.get() != &peer) hot_ = peer.shared_from_this();
  RunBatch(peer);
}

void CallServer::RunBatch(CallerConnection& peer) {
  do {
    peer.Pause(false);
    RunWhole(peer);
    // Completions wake this thread only once the peer is paused: room made before is seen here.
  } while (peer.paused() && !peer.parked() &&
           ActorFlow::MayRun(peer.Unsent() * 2, peer.running()) && !stop_by_call_ &&
           generation_ == ForkGuard::generation());
}

void CallServer::RunWhole(CallerConnection& peer) {
  Frame frame;
  std::string why;
  peer.ScanControls(limits_);  // a call that is cancelled behind it must not run
  unsigned calls = 0;
  std::size_t unsent = peer.Unsent();  // an upper bound: another thread may flush
  bool exposed = false;
  Instant oldest{};
  while (true) {
    const ParseOutcome outcome = ParseFrame(peer.in().view(), limits_, &frame, &why);
    if (outcome == ParseOutcome::kNeedMore) break;
    if (outcome == ParseOutcome::kFrame && !ActorFlow::MayRun(unsent, peer.running())) {
      peer.Flush();
      unsent = peer.Unsent();
      if (ActorFlow::MayRun(unsent, peer.running())) continue;
      peer.Pause(true);
      break;
    }
    if (unsent >= ActorFlow::kBytesPerFlush) {
      peer.Flush();
      unsent = peer.Unsent();
    }
    if (unsent != 0 && !exposed) {
      flusher().Expose(peer.shared_from_this());
      exposed = true;
      oldest = Now();
    } else if (unsent != 0 && calls % ActorFlow::kCallsPerClockRead == 0) {
      const Instant now = Now();
      if (now - oldest >= ActorFlow::kHold) {
        peer.Flush();
        unsent = peer.Unsent();
        oldest = now;
      }
    }
    if (outcome == ParseOutcome::kBad || !RunOne(peer, frame, &unsent)) {
      if (outcome == ParseOutcome::kBad) Refuse(peer, why);
      break;
    }
    ++calls;
    if (stop_by_call_ || generation_ != ForkGuard::generation()) break;
  }
  if (generation_ != ForkGuard::generation()) return;
  if (exposed) flusher().Cover();
  peer.in().Shrink(1u << 20);
  peer.Flush();
}

/// False: the connection is over, or paused.
bool CallServer::RunOne(CallerConnection& peer, const Frame& frame, std::size_t* unsent) {
  const std::size_t bytes = frame.bytes;
  if ((frame.head.flags & ~(kFlagNamed | kFlagObjects)) != 0) return TakeControl(peer, frame);
  if ((frame.head.flags & kFlagObjects) != 0 && peer.away() && !Prepared(peer, frame)) return false;
  if (!peer.TakeCall(frame)) return Refuse(peer, "a call out of sequence");
  reply_.Clear();
  reply_.Extend(kFrameHeadBytes);
  std::uint16_t flags = kFlagReply;
  const StatusOr<Ran> ran = peer.session->Run(frame, peer, reply_, &flags);
  if (generation_ != ForkGuard::generation()) return false;
  if (!ran.ok()) return Refuse(peer, MessageOf(ran.status()));
  if (*ran == Ran::kReplied || *ran == Ran::kStop) {
    peer.Told();
    *unsent = peer.Reply(frame.head.sequence, flags, reply_);
  }
  if (*ran == Ran::kStop || *ran == Ran::kGone) stop_by_call_ = true;
  reply_.Shrink(1u << 20);
  peer.in().Consume(bytes);
  return true;
}

/// False: its arguments are on their way. Other callers go on; this one's calls stay in order.
bool CallServer::Prepared(CallerConnection& peer, const Frame& frame) {
  peer.Park();  // first: they may come at once
  if (!peer.session->Prepare(frame, peer)) {
    peer.Pause(true);
    return false;
  }
  peer.Unparked();
  return true;
}

bool CallServer::Refuse(CallerConnection& peer, const std::string& why) {
  Log(LogLevel::kWarning, "caller dropped", {{"who", peer.who()}, {"why", why}});
  peer.Goodbye("this connection sent " + why);
  Drop(peer);
  return false;
}

void CallServer::ResumePaused() {
  std::vector<std::shared_ptr<CallerConnection>> ready;
  for (const auto& [id, peer] : peers_) {
    if (peer->paused() && !peer->parked() &&
        ActorFlow::MayRun(peer->Unsent() * 2, peer->running())) {
      ready.push_back(peer);
    }
  }
  for (const std::shared_ptr<CallerConnection>& peer : ready) RunBatch(*peer);
}

}  // namespace troupe::actors
