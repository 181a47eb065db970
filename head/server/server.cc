#include "head/server/server.h"

#include <boost/asio/post.hpp>
#include <iterator>
#include <utility>
#include <variant>
#include <vector>

#include "head/core/machine/lived_time.h"
#include "head/core/machine/snapshot.h"
#include "head/core/nodes/tokens.h"
#include "head/server/net_token_mint.h"
#include "head/server/probe.h"
#include "runtime/async/os_random.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/os/family.h"
#include "runtime/os/host.h"
#include "runtime/wire/error_reply.h"
#include "runtime/wire/frame.h"

namespace troupe::head {
namespace {

namespace asio = boost::asio;
using async::Task;

constexpr std::chrono::seconds kFinishLimit{1};
constexpr std::chrono::minutes kRenewalPause{1};

}  // namespace

Server::Server(const async::Executor& executor, const Clock& clock, Random& random,
               const net::Authority& authority, HeadCore& core, Journal& journal,
               ServerOptions options, std::function<void(Status)> on_end)
    : executor_(executor),
      clock_(clock),
      random_(random),
      authority_(authority),
      core_(core),
      options_(std::move(options)),
      on_end_(std::move(on_end)),
      callers_(executor, random, [this](const Input& input) { Feed(input); }),
      http_(options_.http->executor(),
            {executor, core, rules_, watch_, clock, options_.journal_folder,
             [this](CallerRequest request) {
               if (!ended_) callers_.Ask(std::move(request));
             },
             options_.read_archive,
             [this](wire::Role role, const TokenId& id) { return CredentialsFor(role, id); }}),
      scope_(executor, "head"),
      timer_(executor, clock, [this] { Feed(Tick()); }),
      journal_(
          journal,
          [this](std::uint64_t sequence, bool low_space) {
            asio::post(executor_, [this, sequence, low_space] { OnDurable(sequence, low_space); });
          },
          [this](Status status) {
            asio::post(executor_, [this, status] {
              if (!std::exchange(ended_, true)) on_end_(status);
            });
          }) {}

// The server's thread uses members that are destroyed here.
Server::~Server() { options_.http->Stop(); }

void Server::OnDurable(std::uint64_t sequence, bool low_space) {
  if (ended_) return;
  if (low_space != low_space_) {
    low_space_ = low_space;
    Log(low_space ? LogLevel::kError : LogLevel::kInfo,
        low_space ? "the disk is full: what is new is refused, what runs may end"
                  : "the disk has room again");
    Feed(DiskFull{low_space});
  }
  watch_.OnDurable(sequence, clock_.Now());
  FaultAt("head.durable");
  Feed(Appended{sequence});
  if (since_snapshot_ >= options_.snapshot_every && !low_space_) TakeSnapshot();
}

void Server::TakeSnapshot() {
  std::vector<wire::Event> events = SnapshotOf(core_.state());
  since_snapshot_ = 0;
  Log(LogLevel::kInfo, "snapshot",
      {{"sequence", core_.last_sequence()}, {"events", events.size()}});
  if (!batch_.rows.empty())
    journal_.Submit(std::exchange(batch_.rows, {}));  // placed behind them
  journal_.SubmitSnapshot(core_.last_sequence(), std::move(events));
}

Status Server::Start() {
  TROUPE_TRY(Listen());
  since_snapshot_ = options_.replayed;
  core_.set_address(address());
  Perform(core_.Start(clock_.Now(), clock_.WallTimeUs()));
  rules_ = RulesNow();
  unix_->Start([this](std::shared_ptr<net::Connection> c) { OnConnection(std::move(c)); });
  tcp_->Start([this](std::shared_ptr<net::Connection> c) { OnConnection(std::move(c)); });
  return absl::OkStatus();
}

Status Server::Listen() {
  TROUPE_TRY(UseNewCertificate());
  net::ListenOptions local;
  TROUPE_ASSIGN(local.address, net::UnixAddress(options_.socket_path));
  TROUPE_ASSIGN(unix_, net::Listener::Open(executor_, std::move(local)));
  return absl::OkStatus();
}

Status Server::UseNewCertificate() {
  const std::uint64_t now_us = clock_.WallTimeUs();
  const std::uint64_t life_us = authority_.LifetimeOfUs(wire::Role::kHead);
  const net::PrivateKey key = net::PrivateKey::Generate();
  TROUPE_ASSIGN(
      const std::string pem,
      authority_.IssueFor(key, wire::Role::kHead, NodeId::Random(random_), now_us, life_us));
  TROUPE_ASSIGN(const net::Credentials credentials,
                net::MakeCredentials(key, pem, authority_.certificate().Pem()));
  TROUPE_ASSIGN(const std::string http_pem,
                authority_.IssueForHttp(key, HttpNames(), now_us, life_us));
  TROUPE_ASSIGN(net::Certificate http, net::Certificate::FromPem(http_pem));
  TROUPE_ASSIGN(auto tls,
                net::TlsContext::ForServer(credentials, net::TlsContext::Clients::kOptional, clock_,
                                           std::move(http)));
  shown_.validity = credentials.certificate.validity();
  if (tcp_) {
    tcp_->SetTls(std::move(tls));
    return absl::OkStatus();
  }
  net::ListenOptions listen;
  listen.address = options_.tcp;
  listen.tls = std::move(tls);
  listen.handshakes = options_.handshakes;
  listen.before_handshake = [this] { RenewIfDue(); };
  listen.on_http = http_.Receiver();
  listen.http_executor = options_.http->executor();
  TROUPE_ASSIGN(tcp_, net::Listener::Open(executor_, std::move(listen)));
  return absl::OkStatus();
}

/// Any thread: it reads what never changes.
StatusOr<net::Credentials> Server::CredentialsFor(wire::Role role, const TokenId& token) const {
  async::OsRandom random;
  const net::PrivateKey key = net::PrivateKey::Generate();
  TROUPE_ASSIGN(const std::string request, key.SigningRequest());
  TROUPE_ASSIGN(const std::string pem, authority_.Issue(request, role, NodeId::Random(random),
                                                        clock_.WallTimeUs(), token));
  return net::MakeCredentials(key, pem, authority_.certificate().Pem());
}

/// Names that HTTP clients may reach this head by. `troupe-head` is for those who come by another
/// one, through a tunnel for instance, and choose what to check.
std::vector<std::string> Server::HttpNames() const {
  std::vector<std::string> names = {"troupe-head", "localhost",        "127.0.0.1",
                                    "::1",         options_.host_name, options_.tcp.host};
  const bool all = options_.tcp.host == "0.0.0.0" || options_.tcp.host == "::";
  if (all) {
    const std::vector<std::string> local = os::LocalAddresses();
    names.insert(names.end(), local.begin(), local.end());
  }
  return names;
}

/// Called when the certificate is to be shown, so that no timer has to follow a clock that jumps.
void Server::RenewIfDue() {
  if (!net::RenewalDue(shown_.validity, clock_.WallTimeUs())) return;
  if (clock_.Now() < shown_.next_renewal) return;
  const Status status = UseNewCertificate();
  if (status.ok()) return;
  shown_.next_renewal = clock_.Now() + kRenewalPause;
  Log(LogLevel::kError, "certificate not renewed", {{"why", MessageOf(status)}});
}

net::SessionRules Server::RulesNow() const {
  net::SessionRules rules;
  rules.cluster = authority_.cluster_id();
  rules.head_incarnation = core_.state().incarnation;
  rules.name = options_.host_name;
  rules.local_clients = options_.local_clients;
  rules.ca_pem = authority_.certificate().Pem();
  rules.authority = &authority_;
  rules.signing = options_.handshakes;
  rules.find_token = [this](const TokenId& id) -> std::optional<net::TokenRecord> {
    const auto found = core_.state().tokens.find(id);
    if (found == core_.state().tokens.end()) return std::nullopt;
    net::TokenRecord record = RecordFrom(found->second);
    record.expires_us = ExpiresUs(core_.state(), found->second, clock_.Now(), clock_.WallTimeUs());
    return record;
  };
  rules.on_token_used = [this](const TokenId& id) {
    // The reducer is const here only because lookups are: the loop is the same.
    const_cast<Server*>(this)->Feed(TokenUsed{id});
  };
  rules.revoked = [this](const net::Identity& identity) {
    return IsRevoked(core_.state(), identity.role, identity.token);
  };
  rules.may_rejoin = [this](const net::Identity& identity, const std::string& key_hash) {
    if (identity.role != wire::Role::kWorker) return false;
    const auto known = core_.state().node_keys.find(NodeId(identity.id));
    return known != core_.state().node_keys.end() && known->second == key_hash;
  };
  return rules;
}

std::string Server::address() const { return tcp_->address().Text(); }

void Server::OnConnection(std::shared_ptr<net::Connection> connection) {
  scope_.Spawn("session", Serve(std::move(connection)));
}

Task<void> Server::Serve(std::shared_ptr<net::Connection> connection) {
  const StatusOr<net::Admitted> admitted =
      co_await net::Authenticate(connection, rules_, clock_, random_);
  if (!admitted.ok()) {
    if (const auto more = refused_.Due(clock_.Now())) {
      Log(LogLevel::kWarning, "a peer was not let in",
          {{"peer", connection->peer().address},
           {"why", MessageOf(admitted.status())},
           {"not_said_before", *more}});
    }
    co_return;
  }
  const SessionId session = admitted->session;
  sessions_[session] = connection;
  SessionOpened opened;
  opened.session = session;
  opened.role = admitted->role;
  opened.subject = admitted->subject;
  opened.host = admitted->hello.host;
  opened.local = connection->peer().local;
  opened.token = admitted->token;
  opened.issued_key_hash = admitted->issued_key_hash;
  Feed(opened);
  for (;;) {
    StatusOr<wire::Message> message = co_await connection->Receive();
    if (!message.ok()) break;
    if (FaultAt("head.request.received") != Fault::kNone) continue;
    OnMessage(session, *std::move(message));
    FaultAt("head.request.handled");
  }
  sessions_.erase(session);
  if (!ended_) Feed(SessionClosed{session});
}

void Server::OnMessage(const SessionId& session, wire::Message message) {
  MessageFrom input;
  input.session = session;
  if (const auto* relay = wire::GetIf<wire::Relay>(&message.body)) {
    StatusOr<wire::Message> inner = wire::DecodeFrame(message.attachment);
    if (!inner.ok()) {
      Log(LogLevel::kWarning, "a relayed request cannot be read",
          {{"process", relay->process.Short()}, {"why", MessageOf(inner.status())}});
      return;
    }
    input.relay = *relay;
    input.message = *std::move(inner);
  } else {
    input.message = std::move(message);
  }
  Feed(input);
}

void Server::Feed(const Input& input) {
  if (ended_) return;
  const Instant now = clock_.Now();
  Effects effects = core_.Handle(input, now, clock_.WallTimeUs());
  // A node that falls silent is suspect by a tick, which writes nothing down.
  http_.feed().OnStep(effects.append, std::holds_alternative<Tick>(input));
  watch_.OnStep(clock_.Now() - now, effects.append, core_.state(), now);
  Perform(std::move(effects));
}

void Server::Perform(Effects effects) {
  since_snapshot_ += effects.append.size();
  batch_.rows.insert(batch_.rows.end(), std::make_move_iterator(effects.append.begin()),
                     std::make_move_iterator(effects.append.end()));
  batch_.plan_wanted = batch_.plan_wanted || effects.plan_soon;
  if ((batch_.plan_wanted || !batch_.rows.empty()) && !std::exchange(batch_.end_posted, true)) {
    asio::post(executor_, [this] { EndBatch(); });
  }
  for (const Send& send : effects.sends) Deliver(send);
  for (const Close& close : effects.closes) {
    const auto found = sessions_.find(close.session);
    if (found != sessions_.end()) scope_.Spawn("close", End(found->second));
    asio::post(executor_, [this, session = close.session] { callers_.Close(session); });
  }
  for (const Certify& certify : effects.certificates) Issue(certify);
  for (const Probe& probe : effects.probes) scope_.Spawn("probe", ProbeNode(probe));
  for (const Look& look : effects.looks) {
    asio::post(executor_, [this, seen = WorkerSeen{look.node, look.question,
                                                   os::StateOf(look.pid)}] { Feed(seen); });
  }
  options_.job_logs->Serve(effects, [this](const Send& send) { Deliver(send); });
  options_.archive->Serve(effects, [this](const Input& input) { Feed(input); });
  if (effects.wake_at) timer_.ArmAt(*effects.wake_at);
  if (effects.stop && !std::exchange(ended_, true)) scope_.Spawn("stop", EndAll());
}

// Behind all that was ready: one pass over the queue and one commit for it.
void Server::EndBatch() {
  batch_.end_posted = false;
  if (std::exchange(batch_.plan_wanted, false)) Feed(PlanNow());
  if (batch_.rows.empty()) return;
  watch_.OnSubmitted(batch_.rows.back().sequence, clock_.Now());
  journal_.Submit(std::exchange(batch_.rows, {}));
}

void Server::Deliver(const Send& send) {
  if (callers_.Deliver(send)) return;
  const auto found = sessions_.find(send.to.session);
  if (found == sessions_.end()) return;
  if (FaultAt("head.answer") != Fault::kNone) return;
  Status status;
  if (send.to.process.IsNil()) {
    status = found->second->Send(send.message);
  } else {
    StatusOr<std::string> frame = wire::EncodeFrame(send.message);
    if (!frame.ok()) {
      Log(LogLevel::kError, "an answer cannot be sent", {{"why", MessageOf(frame.status())}});
      return;
    }
    wire::Message down;
    wire::RelayDown body;
    body.process = send.to.process;
    down.body = body;
    down.attachment = *std::move(frame);
    status = found->second->Send(down);
  }
  if (!status.ok()) {
    Log(LogLevel::kWarning, "a message was not sent",
        {{"kind", std::string(wire::NameOf(send.message.body))},
         {"to", found->second->peer().address},
         {"why", MessageOf(status)}});
  }
}

void Server::Issue(const Certify& certify) {
  Send answer;
  answer.to = certify.to;
  answer.message.reply_to = certify.reply_to;
  const StatusOr<std::string> pem = authority_.Issue(certify.request, certify.role, certify.subject,
                                                     clock_.WallTimeUs(), certify.token);
  if (pem.ok()) {
    wire::ProcessCertificate certificate;
    certificate.certificate = *pem;
    certificate.ca_certificate = authority_.certificate().Pem();
    answer.message.body = std::move(certificate);
  } else {
    answer.message.body = wire::ErrorReplyOf(pem.status());
  }
  Deliver(answer);
}

Task<void> Server::End(std::shared_ptr<net::Connection> connection) {
  co_await connection->Finish(kFinishLimit);
}

Task<void> Server::EndAll() {
  std::vector<std::shared_ptr<net::Connection>> open;
  for (const auto& [id, connection] : sessions_) open.push_back(connection);
  for (const auto& connection : open) co_await connection->Finish(kFinishLimit);
  on_end_(absl::OkStatus());
}

Task<void> Server::ProbeNode(Probe probe) {
  const auto node = core_.state().nodes.find(probe.node);
  if (node == core_.state().nodes.end()) co_return;
  const wire::RegisterNode info = node->second.info;
  ProbeDone done;
  done.node = probe.node;
  done.incarnation = probe.incarnation;
  done.refused = co_await NobodyListens(info);
  Feed(done);
}

void Server::Stop() {
  if (std::exchange(ended_, true)) return;
  unix_->Stop();
  tcp_->Stop();
  scope_.Spawn("stop", EndAll());
}

}  // namespace troupe::head
