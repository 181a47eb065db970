#include "worker/peer_server.h"

#include <optional>
#include <string_view>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/net/handover.h"
#include "runtime/net/tls_context.h"
#include "runtime/wire/role_table.h"
#include "runtime/wire/token_rule.h"

namespace troupe::worker {
namespace {

// Requests of one connection that may be under way; only those for logs wait.
constexpr int kQuestionsMax = 256;

}  // namespace

PeerServer::PeerServer(async::Executor executor, const Clock& clock, Random& random,
                       Service& service, BlobStore& blobs)
    : executor_(executor),
      clock_(clock),
      random_(random),
      service_(service),
      blobs_(blobs),
      scope_(executor, "peers") {}

PeerServer::~PeerServer() { Stop(); }

Status PeerServer::Open(const Options& options, const net::Credentials& credentials) {
  TROUPE_ASSIGN(const net::Identity identity, credentials.certificate.identity());
  rules_.cluster = identity.cluster;
  rules_.name = options.node_name;
  rules_.ca_pem = credentials.ca.Pem();
  rules_.revoked = [this](const net::Identity& who) { return revocations_.Refuses(who); };
  const auto accept = [this](std::shared_ptr<net::Connection> connection) {
    Accept(std::move(connection));
  };
  net::ListenOptions local;
  TROUPE_ASSIGN(local.address, net::UnixAddress(options.unix_path));
  TROUPE_ASSIGN(unix_, net::Listener::Open(executor_, std::move(local)));
  net::ListenOptions remote;
  remote.address = options.listen;
  remote.handshakes = options.handshakes;
  call_socket_of_ = options.call_socket_of;
  remote.on_named = [this](const std::string& name, UniqueFd connection) {
    PassOn(name, std::move(connection));
  };
  TROUPE_ASSIGN(remote.tls, net::TlsContext::ForServer(
                                credentials, net::TlsContext::Clients::kRequired, clock_));
  TROUPE_ASSIGN(tcp_, net::Listener::Open(executor_, std::move(remote)));
  unix_->Start(accept);
  tcp_->Start(accept);
  return absl::OkStatus();
}

Status PeerServer::Renew(const net::Credentials& credentials) {
  TROUPE_ASSIGN(auto tls, net::TlsContext::ForServer(credentials,
                                                     net::TlsContext::Clients::kRequired, clock_));
  tcp_->SetTls(std::move(tls));
  return absl::OkStatus();
}

void PeerServer::Revoke(const std::vector<TokenId>& tokens) {
  revocations_.Set(tokens);
  for (const TokenId& token : tokens) {
    const auto [first, last] = by_token_.equal_range(token);
    for (auto each = first; each != last; ++each) each->second->Close(net::RevokedToken(token));
  }
}

void PeerServer::Stop() {
  if (unix_) unix_->Stop();
  if (tcp_) tcp_->Stop();
  scope_.Cancel();
}

void PeerServer::PassOn(const std::string& server_name, UniqueFd connection) {
  const std::optional<std::string_view> aside = net::ProcessAskedAside(server_name);
  const auto process = ProcessId::FromHex(aside ? *aside : server_name);
  std::string socket = process ? call_socket_of_(*process) : "";
  if (aside && !socket.empty()) socket = net::AsideSocket(socket);
  // The caller learns of the end from the head; a closed connection tells it to wait for that.
  const Status passed =
      socket.empty() ? MakeError(ErrorCode::kNotFound, "no process of this node serves calls there")
                     : net::HandOver(net::HandoverPath(socket), connection.get());
  if (passed.ok()) return;
  Log(LogLevel::kInfo, "a caller of another host was not passed on",
      {{"process", process ? process->Short() : "no id"}, {"why", MessageOf(passed)}});
}

void PeerServer::Accept(std::shared_ptr<net::Connection> connection) {
  scope_.Spawn("serve", Serve(std::move(connection)));
}

async::Task<void> PeerServer::Serve(std::shared_ptr<net::Connection> connection) {
  StatusOr<net::Admitted> admitted =
      co_await net::Authenticate(connection, rules_, clock_, random_);
  if (!admitted.ok()) {
    if (const auto more = refused_.Due(clock_.Now())) {
      Log(LogLevel::kInfo, "a peer was refused",
          {{"peer", connection->peer().address},
           {"reason", MessageOf(admitted.status())},
           {"not_said_before", *more}});
    }
    co_return;
  }
  const bool ends_with_token = !admitted->token.IsNil() && wire::EndsWithItsToken(admitted->role);
  auto listed = ends_with_token ? by_token_.emplace(admitted->token, connection) : by_token_.end();
  const std::uint64_t asker = next_asker_++;
  const auto open = std::make_shared<int>(0);
  for (;;) {
    StatusOr<wire::Message> request = co_await connection->Receive();
    if (!request.ok()) break;
    if (wire::Holds<wire::Goodbye>(request->body)) break;
    const bool may = wire::MayAskWorker(admitted->role, request->body.index());
    if (!may || *open >= kQuestionsMax) {
      const Status refused = MakeError(
          ErrorCode::kInvalid,
          may ? std::to_string(kQuestionsMax) +
                    " questions of this connection are open at this worker, the limit: ask again "
                    "once one is answered"
              : "this worker does not answer " + std::string(wire::NameOf(request->body)) +
                    " to a " + wire::NameOf(admitted->role));
      if (!connection->Send(ErrorAnswer(request->id, refused)).ok()) break;
      continue;
    }
    scope_.Spawn("answer", AnswerOne(connection, asker, *std::move(request), open));
    const Status drained = co_await connection->Drain();
    if (!drained.ok()) break;
  }
  if (listed != by_token_.end()) by_token_.erase(listed);
  blobs_.AbandonUploads(asker);
  service_.Forget(asker);
  connection->Close(MakeError(ErrorCode::kConnection, "the session ended"));
}

async::Task<void> PeerServer::AnswerOne(std::shared_ptr<net::Connection> connection,
                                        std::uint64_t asker, wire::Message request,
                                        std::shared_ptr<int> open) {
  ++*open;
  const wire::Message answer = co_await service_.Answer(asker, std::move(request));
  --*open;
  static_cast<void>(connection->Send(answer));  // a lost peer is seen by Serve
}

}  // namespace troupe::worker
