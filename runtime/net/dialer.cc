#include "runtime/net/dialer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/async/deadline.h"
#include "runtime/async/real_clock.h"
#include "runtime/net/endpoint.h"
#include "runtime/net/listener.h"
#include "runtime/net/retry_pause.h"

namespace troupe::net {
namespace {

using async::kTuple;
using async::Task;
namespace asio = async::asio;
using namespace std::chrono_literals;

/// Thrown nowhere: marks an attempt that the server's closing door ended.
constexpr char kClosedAtOnce[] = "the connection was closed during the TLS handshake";

Status CannotConnect(const Address& address, const boost::system::error_code& error) {
  const bool local = address.is_unix();
  if (error == asio::error::connection_refused ||
      (local && error == boost::system::errc::no_such_file_or_directory)) {
    return MakeError(
        ErrorCode::kConnection,
        "nobody listens on " + address.Text() +
            (local ? "\n  the cluster there is not running; `troupe status` lists what runs here"
                   : "\n  is the address right, and does the head run there? (`troupe status` on "
                     "that machine)"));
  }
  return MakeError(ErrorCode::kConnection,
                   "cannot connect to " + address.Text() + ": " + error.message());
}

Task<StatusOr<Socket>> Connect(Address address) {
  TROUPE_CO_ASSIGN(const std::vector<Endpoint> endpoints, co_await Resolve(address));
  const async::Executor executor = co_await asio::this_coro::executor;
  Status failed = CannotConnect(address, asio::error::host_not_found);
  for (const auto& endpoint : endpoints) {
    StatusOr<UniqueFd> fd = OpenSocket(endpoint);
    if (!fd.ok()) {  // a family may have no addresses
      failed = MakeError(ErrorCode::kConnection,
                         "cannot connect to " + address.Text() + ": " + MessageOf(fd.status()));
      continue;
    }
    TROUPE_CO_ASSIGN(Socket socket, WrapSocket(executor, *std::move(fd)));
    auto [error] = co_await socket.async_connect(endpoint, kTuple);
    if (!error) co_return std::move(socket);
    failed = CannotConnect(address, error);
  }
  co_return failed;
}

PeerInfo LocalPeer(const Address& address, int fd) {
  PeerInfo peer;
  peer.address = address.Text();
  peer.local = true;
  ucred who{};
  socklen_t length = sizeof who;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0) {
    peer.uid = who.uid;
    peer.pid = who.pid;
  }
  return peer;
}

Task<StatusOr<std::shared_ptr<Connection>>> DialLocal(Address address) {
  TROUPE_CO_ASSIGN(Socket socket, co_await Connect(address));
  PeerInfo peer = LocalPeer(address, socket.native_handle());
  if (peer.uid != geteuid() && peer.uid != 0) {
    co_return MakeError(ErrorCode::kConnection, address.Text() + " belongs to another user (uid " +
                                                    std::to_string(peer.uid) + "): not used");
  }
  const async::Executor executor = co_await asio::this_coro::executor;
  co_return MakeConnection(executor, MakePlainStream(std::move(socket)), std::move(peer), true);
}

Task<StatusOr<std::shared_ptr<Connection>>> DialTls(Address address,
                                                    std::shared_ptr<const TlsContext> tls,
                                                    ExpectedPeer expected) {
  TROUPE_CO_ASSIGN(Socket socket, co_await Connect(address));
  SetTcpOptions(socket.native_handle());
  PeerInfo peer;
  peer.address = address.Text();
  peer.host = address.host;
  TROUPE_CO_ASSIGN(auto engine,
                   TlsEngine::Client(std::move(tls), std::move(expected), peer.address));
  Status done = co_await TlsHandshake(socket, *engine);
  if (!done.ok()) {
    co_return MakeError(ErrorCodeOf(done), ErrorCodeOf(done) == ErrorCode::kConnection
                                               ? peer.address + ": " + MessageOf(done)
                                               : MessageOf(done));
  }
  peer.certificate = engine->verdict();
  TROUPE_CO_ASSIGN(peer.exporter, engine->Exporter(kJoinExporterLabel));
  const async::Executor executor = co_await asio::this_coro::executor;
  auto stream = MakeTlsStream(std::move(socket), std::move(engine));
  // The server has proven itself in the handshake: its messages are taken in full.
  co_return MakeConnection(executor, std::move(stream), std::move(peer), true);
}

bool ClosedAtOnce(const Status& status) {
  return ErrorCodeOf(status) == ErrorCode::kConnection &&
         (MessageOf(status).find(kClosedAtOnce) != std::string::npos ||
          MessageOf(status).find("reset by peer") != std::string::npos);
}

}  // namespace

Task<StatusOr<std::shared_ptr<Connection>>> Dial(DialOptions options) {
  const std::string text = options.address.Text();
  if (!options.address.is_unix() && !options.tls) {
    co_return MakeError(ErrorCode::kInternal,
                        "dialling TCP needs a TLS context: there is no insecure mode");
  }
  async::RealClock clock;
  const Instant end = clock.Now() + options.limit;
  RetryPause pause;
  for (;;) {
    auto attempt = options.address.is_unix()
                       ? DialLocal(options.address)
                       : DialTls(options.address, options.tls, options.expected);
    const Duration left = std::max(Duration(1ms), end - clock.Now());
    std::string what = "connecting to " + text +
                       " (no answer: wrong address, a firewall, or an overloaded machine)";
    auto connection = co_await async::WithDeadline(std::move(attempt), left, std::move(what));
    if (!connection.ok() && ErrorCodeOf(connection.status()) == ErrorCode::kTimeout) {
      co_return async::TimeoutError(
          options.limit, "connecting to " + text +
                             " (no answer: wrong address, a firewall, or an overloaded machine)");
    }
    if (connection.ok() || !ClosedAtOnce(connection.status()) ||
        !pause.FitsBetween(clock.Now(), end)) {
      co_return connection;
    }
    co_await pause.Wait();
  }
}

}  // namespace troupe::net
