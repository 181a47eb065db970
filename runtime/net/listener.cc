#include "runtime/net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <utility>

#include "runtime/async/deadline.h"
#include "runtime/async/real_clock.h"
#include "runtime/async/scope.h"
#include "runtime/base/log.h"
#include "runtime/base/seldom.h"
#include "runtime/net/admission.h"
#include "runtime/net/bind.h"
#include "runtime/net/client_hello.h"
#include "runtime/net/endpoint.h"
#include "runtime/net/shortage.h"

namespace troupe::net {
namespace {

using async::kTuple;
using async::Task;
namespace asio = async::asio;
using namespace std::chrono_literals;

constexpr int kAcceptBudget = 64;

PeerInfo PeerOf(int fd, bool local) {
  PeerInfo peer;
  peer.local = local;
  if (local) {
    ucred who{};
    socklen_t size = sizeof who;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size);
    peer.uid = who.uid;
    peer.pid = who.pid;
    peer.address = "pid " + std::to_string(who.pid);
    return peer;
  }
  const Address address = PeerAddress(fd);
  peer.host = address.host;
  peer.address = address.Text();
  return peer;
}

/// A connection on its way through the handshake; moves between loops as a value.
struct Arrival {
  UniqueFd fd;
  PeerInfo peer;
  std::shared_ptr<void> ticket;
  std::shared_ptr<const TlsContext> tls;
  std::unique_ptr<TlsEngine> engine;  // once the handshake is done
  std::string server_name;            // not empty: hand `fd` over raw
};

UniqueFd TakeFd(Socket& socket) {
  boost::system::error_code error;
  return UniqueFd(socket.release(error));
}

/// Waits until the ClientHello is there, consuming nothing.
Task<StatusOr<std::string>> AwaitServerName(Socket& socket) {
  for (;;) {
    std::size_t seen = 0;
    TROUPE_CO_ASSIGN(const ServerNamePeek peek, PeekServerName(socket.native_handle(), &seen));
    if (peek.state != ServerNamePeek::State::kIncomplete) {
      const int one = 1;
      setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
      co_return peek.name;
    }
    // "Readable" must mean more than what was peeked at, or this would spin.
    const int more = static_cast<int>(seen) + 1;
    setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &more, sizeof more);
    auto [error] = co_await socket.async_wait(Socket::wait_read, kTuple);
    if (error) co_return MakeError(ErrorCode::kConnection, error.message());
  }
}

/// From the accepted socket to an established session (or a server name to route by).
Task<StatusOr<std::shared_ptr<Arrival>>> Greet(std::shared_ptr<Arrival> arrival,
                                               bool route_by_name) {
  const async::Executor executor = co_await asio::this_coro::executor;
  TROUPE_CO_ASSIGN(Socket socket, WrapSocket(executor, std::move(arrival->fd)));
  if (route_by_name) {
    TROUPE_CO_ASSIGN(arrival->server_name, co_await AwaitServerName(socket));
    if (!arrival->server_name.empty()) {
      arrival->fd = TakeFd(socket);
      co_return arrival;
    }
  }
  TROUPE_CO_ASSIGN(arrival->engine, TlsEngine::Server(arrival->tls, arrival->peer.address));
  TROUPE_CO_TRY(co_await TlsHandshake(socket, *arrival->engine));
  arrival->peer.certificate = arrival->engine->verdict();
  TROUPE_CO_ASSIGN(arrival->peer.exporter, arrival->engine->Exporter(kJoinExporterLabel));
  arrival->fd = TakeFd(socket);
  co_return arrival;
}

}  // namespace

class Listener::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const async::Executor& executor, ListenOptions options, Bound bound)
      : executor_(executor),
        handshake_executor_(options.handshakes.value_or(executor)),
        options_(std::move(options)),
        address_(std::move(bound.address)),
        acceptor_(executor),
        admission_(options_.unauthenticated_per_host_max, options_.unauthenticated_max),
        reserve_(open("/dev/null", O_RDONLY | O_CLOEXEC)),
        accepting_(executor, "listener on " + address_.Text()),
        handshaking_(std::make_unique<async::Scope>(handshake_executor_,
                                                    "handshakes on " + address_.Text())) {
    const int family = address_.is_unix() ? AF_UNIX : FamilyOf(bound.fd.get());
    acceptor_.assign(asio::generic::stream_protocol(family, 0), bound.fd.Release());
    acceptor_.non_blocking(true);
  }

  const Address& address() const { return address_; }
  void SetTls(std::shared_ptr<const TlsContext> tls) { options_.tls = std::move(tls); }

  void Start(OnConnection on_connection) {
    on_connection_ = std::move(on_connection);
    accepting_.Spawn("accept", AcceptLoop(shared_from_this()));
  }

  void Stop() {
    if (stopped_) return;
    stopped_ = true;
    accepting_.Cancel();
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    if (address_.is_unix()) unlink(address_.path.c_str());
    // The handshakes' scope belongs to their loop.
    asio::post(
        handshake_executor_,
        [scope = std::shared_ptr<async::Scope>(std::move(handshaking_))] { scope->Cancel(); });
  }

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;

  static int FamilyOf(int fd) {
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length);
    return own.ss_family;
  }

  Task<void> AcceptLoop(std::shared_ptr<Impl> self) {
    while (!stopped_) {
      auto [error] = co_await acceptor_.async_wait(Acceptor::wait_read, kTuple);
      if (error || stopped_) co_return;
      if (!AcceptSome()) co_await async::SleepFor(Shortage::kPause);
    }
  }

  /// Takes what waits, up to a budget, so that a storm does not starve the loop. False: out of
  /// descriptors, or another failure that needs a pause.
  bool AcceptSome() {
    for (int i = 0; i < kAcceptBudget && !stopped_; ++i) {
      // Not Asio's accept: a descriptor must never exist without close-on-exec.
      UniqueFd fd(
          accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd.valid()) {
        SayOver();
        Receive(std::move(fd));
      } else if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) {
        SayOver();  // a descriptor was there: the system looks for one first
        return true;
      } else if (errno == EMFILE || errno == ENFILE) {
        ShedOne();
        return false;
      } else {
        Log(LogLevel::kWarning, "accept failed",
            {{"address", address_.Text()}, {"error", std::strerror(errno)}});
        return false;
      }
    }
    return true;
  }

  // Out of descriptors: a peer that waits in the backlog would hang, one that is closed knows.
  void ShedOne() {
    if (shortage_.Ran(async::RealClock().Now())) {
      Log(LogLevel::kError,
          "out of file descriptors: connections are turned away (raise `ulimit -n`)",
          {{"address", address_.Text()}});
    }
    reserve_.Reset();
    UniqueFd turned_away(accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
    turned_away.Reset();
    reserve_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }

  void SayOver() {
    if (!shortage_.lasts()) return;
    const std::optional<std::uint64_t> times = shortage_.Over(async::RealClock().Now());
    if (!times) return;
    if (!reserve_.valid()) reserve_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    Log(LogLevel::kInfo, "there are file descriptors again",
        {{"address", address_.Text()}, {"turned_away", *times}});
  }

  void Receive(UniqueFd fd) {
    if (stopped_) return;
    auto arrival = std::make_shared<Arrival>();
    arrival->peer = PeerOf(fd.get(), address_.is_unix());
    arrival->fd = std::move(fd);
    if (arrival->peer.local && arrival->peer.uid != geteuid()) {
      if (const auto more = refused_.Due(async::RealClock().Now())) {
        Log(LogLevel::kWarning, "another user's connection was closed",
            {{"address", address_.Text()},
             {"uid", static_cast<std::uint64_t>(arrival->peer.uid)},
             {"not_said_before", *more}});
      }
      return;
    }
    arrival->ticket = admission_.Admit(arrival->peer.host, arrival->fd.get());
    if (!arrival->ticket) {
      if (const auto more = refused_.Due(async::RealClock().Now())) {
        Log(LogLevel::kWarning, "too many unauthenticated connections: one was closed",
            {{"peer", arrival->peer.address}, {"not_said_before", *more}});
      }
      return;
    }
    if (arrival->peer.local) return Deliver(std::move(arrival));
    SetTcpOptions(arrival->fd.get());
    if (options_.before_handshake) options_.before_handshake();
    arrival->tls = options_.tls;
    asio::post(handshake_executor_,
               [self = shared_from_this(), arrival, scope = handshaking_.get()] {
                 // The scope lives until a later post on this same executor.
                 scope->Spawn("handshake", Handshake(self, arrival));
               });
  }

  static Task<void> Handshake(std::shared_ptr<Impl> self, std::shared_ptr<Arrival> arrival) {
    auto greeting = Greet(arrival, self->options_.on_named != nullptr);
    std::string what = "the TLS handshake with " + arrival->peer.address;
    auto greeted = co_await async::WithDeadline(std::move(greeting), self->options_.handshake_limit,
                                                std::move(what));
    if (!greeted.ok()) {
      if (const auto more = self->failed_.Due(async::RealClock().Now())) {
        Log(LogLevel::kInfo, "a connection failed before it was authenticated",
            {{"peer", arrival->peer.address},
             {"error", MessageOf(greeted.status())},
             {"not_said_before", *more}});
      }
      co_return;
    }
    if (arrival->engine && arrival->engine->protocol() == kHttpProtocol) {
      asio::post(*self->options_.http_executor, [self, arrival] { self->DeliverHttp(arrival); });
    } else {
      asio::post(self->executor_, [self, arrival] { self->Deliver(arrival); });
    }
  }

  /// On http_executor. It reads only what Start() left unchanged.
  void DeliverHttp(const std::shared_ptr<Arrival>& arrival) const {
    StatusOr<Socket> socket = WrapSocket(*options_.http_executor, std::move(arrival->fd));
    if (!socket.ok()) return;
    options_.on_http({MakeTlsStream(*std::move(socket), std::move(arrival->engine)),
                      std::move(arrival->peer), std::move(arrival->ticket)});
  }

  void Deliver(std::shared_ptr<Arrival> arrival) {
    if (stopped_) return;
    if (!arrival->server_name.empty()) {
      options_.on_named(std::move(arrival->server_name), std::move(arrival->fd));
      return;
    }
    StatusOr<Socket> socket = WrapSocket(executor_, std::move(arrival->fd));
    if (!socket.ok()) return;
    auto stream = arrival->engine ? MakeTlsStream(*std::move(socket), std::move(arrival->engine))
                                  : MakePlainStream(*std::move(socket));
    on_connection_(MakeConnection(executor_, std::move(stream), std::move(arrival->peer), false,
                                  std::move(arrival->ticket)));
  }

  async::Executor executor_;
  async::Executor handshake_executor_;
  ListenOptions options_;
  Address address_;
  Acceptor acceptor_;
  Admission admission_;
  UniqueFd reserve_;  // spent at descriptor exhaustion
  Shortage shortage_;
  Seldom refused_;
  Seldom failed_;
  OnConnection on_connection_;
  bool stopped_ = false;
  async::Scope accepting_;
  std::unique_ptr<async::Scope> handshaking_;  // used and destroyed on handshake_executor_ only
};

StatusOr<std::unique_ptr<Listener>> Listener::Open(const async::Executor& executor,
                                                   ListenOptions options) {
  const bool local = options.address.is_unix();
  if (!local && !options.tls) {
    return MakeError(ErrorCode::kInternal,
                     "a TCP listener needs a TLS context: there is no insecure mode");
  }
  TROUPE_ASSIGN(Bound bound, local ? BindUnix(options.address) : BindTcp(options.address));
  auto impl = std::make_shared<Impl>(executor, std::move(options), std::move(bound));
  return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

Listener::Listener(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Listener::~Listener() { Stop(); }
const Address& Listener::address() const { return impl_->address(); }
void Listener::Start(OnConnection on_connection) { impl_->Start(std::move(on_connection)); }
void Listener::SetTls(std::shared_ptr<const TlsContext> tls) { impl_->SetTls(std::move(tls)); }
void Listener::Stop() { impl_->Stop(); }

}  // namespace troupe::net
