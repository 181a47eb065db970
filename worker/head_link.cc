#include "worker/head_link.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "runtime/async/deadline.h"
#include "runtime/async/os_random.h"
#include "runtime/base/log.h"

namespace troupe::worker {
namespace {

constexpr char kStem[] = "node";
constexpr Duration kPauseFirst = std::chrono::milliseconds(50);
constexpr Duration kPauseMax = std::chrono::seconds(2);
constexpr Duration kRenewalPause = std::chrono::minutes(1);
constexpr Duration kGoodbyeLimit = std::chrono::milliseconds(50);

}  // namespace

HeadLink::HeadLink(const Clock& clock, Options options, Events events)
    : clock_(clock), options_(std::move(options)), events_(std::move(events)) {}

Status HeadLink::LoadStored() {
  TROUPE_ASSIGN(net::Credentials stored, net::LoadCredentials(options_.folder, kStem));
  if (options_.token) {  // a token of another cluster means: join that one
    TROUPE_ASSIGN(const net::Identity identity, stored.certificate.identity());
    if (identity.cluster != options_.token->cluster()) {
      return MakeError(ErrorCode::kWrongCluster, "the stored certificate is of another cluster");
    }
  }
  credentials_ = std::move(stored);
  return absl::OkStatus();
}

bool HeadLink::RenewalDue() const {
  return credentials_ && !renewing_ && clock_.Now() >= next_renewal_ &&
         net::RenewalDue(credentials_->certificate.validity(), clock_.WallTimeUs());
}

async::Task<StatusOr<net::OpenedSession>> HeadLink::Open(bool new_certificate) {
  net::OpenOptions open(options_.address);
  open.credentials = credentials_;
  open.token = options_.token;
  open.hello = options_.hello;
  open.hello.role = wire::Role::kWorker;
  if (credentials_) {
    // Over a Unix socket no certificate is shown: who this node was is told.
    TROUPE_CO_ASSIGN(const net::Identity before, credentials_->certificate.identity());
    open.hello.subject = NodeId(before.id);
  }
  if (new_certificate) open.key = net::PrivateKey::Generate();
  TROUPE_CO_ASSIGN(net::OpenedSession session, co_await net::OpenSession(std::move(open), clock_));
  if (!session.joined.clock_warning.empty()) {
    Log(LogLevel::kWarning, session.joined.clock_warning, {});
  }
  if (session.joined.credentials) {
    TROUPE_CO_TRY(net::StoreCredentials(options_.folder, kStem, *session.joined.credentials));
    const bool renewed = credentials_.has_value();
    credentials_ = *session.joined.credentials;
    if (pulse_) pulse_->Use(*credentials_);
    if (renewed) events_.renewed(*credentials_);
  }
  co_return std::move(session);
}

async::Task<Status> HeadLink::Connect() {
  const bool new_certificate = !credentials_ || RenewalDue();
  TROUPE_CO_ASSIGN(net::OpenedSession session, co_await Open(new_certificate));
  if (!credentials_) {
    co_return MakeError(ErrorCode::kInternal, "the head issued no certificate");
  }
  connection_ = std::move(session.connection);
  welcome_ = std::move(session.joined.welcome);
  co_return absl::OkStatus();
}

async::Task<void> HeadLink::Renew() {
  renewing_ = true;
  StatusOr<net::OpenedSession> session = co_await Open(true);
  renewing_ = false;
  if (session.ok()) {
    session->connection->Close(MakeError(ErrorCode::kConnection, "the certificate was renewed"));
    // A certificate that is due again already was issued by a clock that is far from this one.
    if (RenewalDue()) next_renewal_ = clock_.Now() + kRenewalPause;
    co_return;
  }
  next_renewal_ = clock_.Now() + kRenewalPause;
  Log(LogLevel::kWarning, "the node's certificate was not renewed",
      {{"reason", MessageOf(session.status())}});
}

std::string HeadLink::LocalHost() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = "";
  if (options_.address.is_unix() || !connection_ ||
      getsockname(connection_->native_fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "127.0.0.1";
  }
  return host;
}

async::Task<void> HeadLink::Receive() {
  const std::shared_ptr<net::Connection> connection = connection_;
  events_.up(welcome_);
  for (;;) {
    StatusOr<wire::Message> message = co_await connection->Receive();
    if (!message.ok()) {
      connection_.reset();
      if (!leaving_) events_.down(message.status());
      co_return;
    }
    events_.message(*std::move(message));
  }
}

async::Task<void> HeadLink::Run() {
  async::OsRandom random;
  pulse_ = std::make_unique<Pulse>(clock_, kBeatEvery, options_.address, options_.hello);
  pulse_->Use(*credentials_);
  while (!leaving_) {
    if (connection_) co_await Receive();
    Duration pause = kPauseFirst;
    while (!leaving_) {
      const Status status = co_await Connect();
      if (status.ok()) break;
      Log(LogLevel::kWarning, "the head cannot be reached",
          {{"address", options_.address.Text()}, {"reason", MessageOf(status)}});
      const auto jitter = Duration(random.Next() % static_cast<std::uint64_t>(pause.count()));
      co_await async::SleepFor(pause / 2 + jitter);
      pause = std::min(2 * pause, kPauseMax);
    }
  }
  pulse_.reset();
}

void HeadLink::Send(const wire::Message& message) {
  if (!connection_) return;
  const Status status = connection_->Send(message);
  if (!status.ok()) {
    Log(LogLevel::kError, "a message to the head could not be sent",
        {{"kind", std::string(wire::NameOf(message.body))}, {"reason", MessageOf(status)}});
  }
}

void HeadLink::Drop(const Status& reason) {
  if (!connection_) return;
  Log(LogLevel::kWarning, "leaving the session with the head", {{"reason", MessageOf(reason)}});
  connection_->Close(reason);
}

async::Task<void> HeadLink::Leave() {
  leaving_ = true;
  if (!connection_) co_return;
  const std::shared_ptr<net::Connection> connection = connection_;
  wire::Goodbye goodbye;
  goodbye.reason = "the node leaves";
  wire::Message message;
  message.body = std::move(goodbye);
  static_cast<void>(connection->Send(message));
  co_await connection->Finish(kGoodbyeLimit);
}

}  // namespace troupe::worker
