#include "actors/net/call_door.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "actors/net/now.h"
#include "actors/net/process_revocations.h"
#include "runtime/async/deadline.h"
#include "runtime/base/log.h"
#include "runtime/base/mutex.h"
#include "runtime/base/seldom.h"
#include "runtime/net/address.h"
#include "runtime/net/admission.h"
#include "runtime/net/endpoint.h"
#include "runtime/net/handover.h"
#include "runtime/net/shortage.h"

namespace troupe::actors {
namespace {

using async::kTuple;
using async::Task;
using net::Socket;

Status MayCall(const net::PeerVerdict& verdict) {
  if (!verdict.identity) return verdict.problem;
  const wire::Role role = verdict.identity->role;
  if (role == wire::Role::kClient || role == wire::Role::kProcess) return absl::OkStatus();
  return MakeError(ErrorCode::kJoinRefused, std::string("a certificate for the role ") +
                                                wire::NameOf(role) +
                                                " calls no actors: only clients and processes do");
}

}  // namespace

struct CallDoor::State {
  State(IdentitySource source, int wake, LinkSink sink, LoopSocket listening, std::string file)
      : identity(std::move(source)),
        path(std::move(file)),
        admission(kHandshakesPerHostMax, kHandshakesMax),
        links(std::move(sink)),
        listener(std::move(listening)),
        wake_fd(wake) {}

  void Deliver(CallStream stream) {
    const MutexLock lock(mutex);
    if (closed || waiting.size() >= kWaitingMax) return;
    waiting.push_back(std::move(stream));
    const std::uint64_t one = 1;
    (void)!::write(wake_fd, &one, sizeof one);
  }

  const IdentitySource identity;
  const std::string path;
  const std::uint32_t generation = ForkGuard::generation();
  net::Admission admission;
  const LinkSink links;
  Seldom refused;
  LoopSocket listener;  // the loop's

  const int wake_fd;
  Mutex mutex;
  bool closed ABSL_GUARDED_BY(mutex) = false;
  std::vector<CallStream> waiting ABSL_GUARDED_BY(mutex);
};

StatusOr<std::unique_ptr<CallDoor>> CallDoor::Open(const std::string& call_socket,
                                                   IdentitySource identity, int wake_fd,
                                                   LinkSink links) {
  std::string path = net::HandoverPath(call_socket);
  TROUPE_ASSIGN(UniqueFd fd, net::ListenForHandovers(path));
  TlsLoop& loop = TlsLoop::Current();
  TROUPE_ASSIGN(LoopSocket listener, LoopSocket::Wrap(loop.executor(), GuardedFd(fd.Release())));
  auto state = std::make_shared<State>(std::move(identity), wake_fd, std::move(links),
                                       std::move(listener), std::move(path));
  loop.Spawn("take over", Accept(state));
  return std::unique_ptr<CallDoor>(new CallDoor(std::move(state)));
}

CallDoor::~CallDoor() {
  if (state_->generation != ForkGuard::generation()) return;
  ::unlink(state_->path.c_str());
  std::vector<CallStream> unused;
  {
    const MutexLock lock(state_->mutex);
    state_->closed = true;
    unused.swap(state_->waiting);
  }
  ::shutdown(state_->listener.fd(), SHUT_RDWR);  // ends Accept, on its own thread
}

std::vector<CallStream> CallDoor::Take() {
  const MutexLock lock(state_->mutex);
  return std::exchange(state_->waiting, {});
}

Task<void> CallDoor::Accept(std::shared_ptr<State> state) {
  net::Shortage shortage;
  for (;;) {
    auto [error] = co_await state->listener.get().async_wait(Socket::wait_read, kTuple);
    {
      const MutexLock lock(state->mutex);
      if (error || state->closed) co_return;
    }
    bool more = true;
    while (more) {
      StatusOr<UniqueFd> accepted = net::AcceptHandover(state->listener.fd());
      more = accepted.ok() && accepted->valid();
      if (!accepted.ok()) {
        if (shortage.Ran(Now())) {
          Log(LogLevel::kError, "callers from other hosts wait",
              {{"why", MessageOf(accepted.status())}});
        }
        co_await async::SleepFor(net::Shortage::kPause);
      }
      if (accepted.ok() && shortage.lasts() && shortage.Over(Now())) {
        Log(LogLevel::kInfo, "callers from other hosts are let in again", {});
      }
      if (!more) continue;
      TlsLoop& loop = TlsLoop::Current();
      auto giver = LoopSocket::Wrap(loop.executor(), GuardedFd(accepted->Release()));
      if (!giver.ok()) continue;
      auto shared = std::make_shared<LoopSocket>(*std::move(giver));
      loop.Spawn("greet", Receive(state, std::move(shared)));
    }
  }
}

Task<void> CallDoor::Receive(std::shared_ptr<State> state, std::shared_ptr<LoopSocket> giver) {
  auto greeting = Greet(state, std::move(giver));
  std::string what = "the TLS handshake of a caller from another host";
  const Status greeted =
      co_await async::WithDeadline(std::move(greeting), Duration(kHandshakeLimit), std::move(what));
  if (greeted.ok()) co_return;
  if (const auto more = state->refused.Due(Now())) {
    Log(LogLevel::kWarning, "a caller from another host was not let in",
        {{"why", MessageOf(greeted)}, {"not_said_before", *more}});
  }
}

Task<Status> CallDoor::Greet(std::shared_ptr<State> state, std::shared_ptr<LoopSocket> giver) {
  auto [error] = co_await giver->get().async_wait(Socket::wait_read, kTuple);
  if (error) co_return MakeError(ErrorCode::kConnection, error.message());
  TROUPE_CO_ASSIGN(UniqueFd taken, net::TakeHandover(giver->fd()));
  const net::Address from = net::PeerAddress(taken.get());
  const std::shared_ptr<void> ticket = state->admission.Admit(from.host, taken.get());
  if (!ticket) {
    co_return MakeError(ErrorCode::kConnection,
                        from.Text() + ": too many handshakes are under way");
  }
  const async::Executor executor = co_await async::asio::this_coro::executor;
  GuardedFd fd(taken.Release());
  TROUPE_CO_ASSIGN(LoopSocket socket, LoopSocket::Wrap(executor, std::move(fd)));
  net::SetTcpOptions(socket.fd());
  TROUPE_CO_ASSIGN(const auto shown, state->identity());
  TROUPE_CO_ASSIGN(auto engine, net::TlsEngine::Server(shown->server, from.Text()));
  TROUPE_CO_TRY(co_await net::TlsHandshake(socket.get(), *engine));
  const Status allowed = MayCall(engine->verdict());
  if (!allowed.ok())
    co_return MakeError(ErrorCodeOf(allowed), from.Text() + ": " + MessageOf(allowed));
  const net::Identity& who = *engine->verdict().identity;
  if (ProcessRevocations().Refuses(who)) {
    co_return MakeError(ErrorCode::kJoinRefused,
                        from.Text() + ": " + MessageOf(net::RevokedToken(who.token)));
  }
  std::string peer = std::string(wire::NameOf(who.role)) + " " + IdToHex(who.id).substr(0, 8) +
                     " at " + from.Text();
  std::string shows = std::string(wire::NameOf(who.role)) + " " + IdToHex(who.id);
  const bool for_objects = engine->for_objects();
  GuardedFd taken_over = socket.Release();
  std::shared_ptr<void> watch = ProcessRevocations().Watch(who, taken_over.get());
  CallStream stream(std::move(taken_over), std::move(engine), std::move(peer), std::move(shows),
                    std::move(watch));
  if (!for_objects) {
    state->Deliver(std::move(stream));
  } else {
    state->links(std::move(stream));
  }
  co_return absl::OkStatus();
}

}  // namespace troupe::actors
