#include "actors/net/call_dial.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "actors/net/tls_loop.h"
#include "runtime/async/deadline.h"
#include "runtime/async/os_random.h"
#include "runtime/async/real_clock.h"
#include "runtime/net/address.h"
#include "runtime/net/endpoint.h"

namespace troupe::actors {
namespace {

using async::kTuple;
using async::Task;
namespace asio = async::asio;
using namespace std::chrono_literals;

constexpr Duration kFirstPause = 20ms;
constexpr Duration kLongestPause = 640ms;

Task<StatusOr<LoopSocket>> Connect(net::Address address) {
  TROUPE_CO_ASSIGN(const std::vector<net::Endpoint> endpoints, co_await net::Resolve(address));
  const async::Executor executor = co_await asio::this_coro::executor;
  Status failed;
  for (const net::Endpoint& endpoint : endpoints) {
    StatusOr<UniqueFd> fd = net::OpenSocket(endpoint);
    if (!fd.ok()) {  // a family may have no addresses
      failed = fd.status();
      continue;
    }
    GuardedFd guarded(fd->Release());
    TROUPE_CO_ASSIGN(LoopSocket socket, LoopSocket::Wrap(executor, std::move(guarded)));
    auto [error] = co_await socket.get().async_connect(endpoint, kTuple);
    if (!error) co_return std::move(socket);
    failed = MakeError(ErrorCode::kConnection, error.message());
  }
  co_return failed;
}

Task<StatusOr<CallStream>> Attempt(RemoteActor target, net::Address address,
                                   IdentitySource identity) {
  const std::string where = address.Text();
  TROUPE_CO_ASSIGN(const auto shown, identity());
  TROUPE_CO_ASSIGN(LoopSocket socket, co_await Connect(std::move(address)));
  net::SetTcpOptions(socket.fd());
  net::ExpectedPeer expected;
  expected.role = wire::Role::kProcess;
  expected.id = target.actor;
  expected.server_name = target.process;
  expected.objects = target.objects;
  TROUPE_CO_ASSIGN(auto engine, net::TlsEngine::Client(shown->client, std::move(expected), where));
  TROUPE_CO_TRY(co_await net::TlsHandshake(socket.get(), *engine));
  if (engine->for_objects() != target.objects) {
    co_return MakeError(ErrorCode::kVersionMismatch,
                        where + ": the actor's process moves no large values");
  }
  std::string who = target.actor.Hex();
  co_return CallStream(socket.Release(), std::move(engine), where, std::move(who));
}

bool MayHelpToTryAgain(const Status& failed) {
  const ErrorCode code = ErrorCodeOf(failed);
  return code == ErrorCode::kConnection || code == ErrorCode::kTimeout;
}

}  // namespace

Task<StatusOr<CallStream>> DialActor(RemoteActor target, IdentitySource identity, Duration limit,
                                     std::function<bool()> wanted) {
  net::Address address;
  address.host = target.host;
  address.port = target.port;
  const std::string where = address.Text();
  async::RealClock clock;
  async::OsRandom random;
  const Instant end = clock.Now() + limit;
  Duration pause = kFirstPause;
  Status last = MakeError(ErrorCode::kTimeout, "it did not answer");
  while (wanted()) {
    auto attempt = Attempt(target, address, identity);
    const Duration left = std::max<Duration>(1ms, end - clock.Now());
    std::string what = "no answer (a firewall, a wrong address, or an overloaded machine)";
    auto stream = co_await async::WithDeadline(std::move(attempt), left, std::move(what));
    if (stream.ok()) co_return std::move(stream);
    // The last attempt often ends for want of time: the one before it says more.
    if (ErrorCodeOf(stream.status()) != ErrorCode::kTimeout || pause == kFirstPause)
      last = stream.status();
    if (!MayHelpToTryAgain(stream.status()) || clock.Now() + pause >= end) {
      const Status failed = MayHelpToTryAgain(stream.status()) ? last : stream.status();
      co_return MakeError(ErrorCodeOf(failed),
                          "it cannot be reached at " + where + ": " + MessageOf(failed));
    }
    const auto jitter =
        static_cast<std::int64_t>(random.Next() % static_cast<std::uint64_t>(pause.count()));
    co_await async::SleepFor(pause / 2 + Duration(jitter / 2));
    pause = std::min(pause * 2, kLongestPause);
  }
  co_return MakeError(ErrorCode::kCancelled, "nobody waits for " + where + " any more");
}

}  // namespace troupe::actors
