#include "runtime/net/session.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <utility>
#include <variant>

#include "runtime/async/deadline.h"
#include "runtime/net/human_time.h"
#include "runtime/net/revocations.h"
#include "runtime/wire/limits.h"

namespace troupe::net {
namespace {

using async::Task;
using namespace std::chrono_literals;

constexpr Duration kRefusalLimit = 1s;
constexpr std::uint64_t kClockWarningUs = 60 * kSecondUs;

StatusOr<std::uint16_t> AgreeOnVersion(const wire::Hello& hello) {
  const std::uint16_t highest = std::min<std::uint16_t>(hello.version, wire::kProtocolVersion);
  if (highest >= hello.version_min && highest >= wire::kProtocolVersionMin) return highest;
  const auto range = [](int low, int high) {
    return low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
  };
  return MakeError(ErrorCode::kVersionMismatch,
                   "it speaks protocol version " + range(hello.version_min, hello.version) +
                       ", this cluster " +
                       range(wire::kProtocolVersionMin, wire::kProtocolVersion) +
                       "\n  install the same version of troupe on both");
}

Status CheckCluster(const wire::Hello& hello, const SessionRules& rules) {
  if (hello.cluster_id.IsNil() || hello.cluster_id == rules.cluster) return {};
  return MakeError(ErrorCode::kWrongCluster,
                   "it belongs to cluster " + hello.cluster_id.Short() + ", this is cluster " +
                       rules.cluster.Short() +
                       "\n  get a token of this cluster: troupe token create > token");
}

bool MayJoin(wire::Role role) {
  return role == wire::Role::kWorker || role == wire::Role::kClient ||
         role == wire::Role::kObserver || role == wire::Role::kProcess;
}

/// By a certificate that the TLS layer has verified.
Status AdmitByCertificate(const wire::Hello& hello, const PeerInfo& peer, const SessionRules& rules,
                          Admitted& admitted) {
  const PeerVerdict& verdict = peer.certificate;
  const Identity& who = *verdict.identity;
  if (rules.revoked && rules.revoked(who)) return RevokedToken(who.token);
  if (verdict.out_of_date && !(rules.may_rejoin && rules.may_rejoin(who, verdict.key_hash))) {
    return MakeError(
        ErrorCode::kJoinRefused,
        MessageOf(verdict.problem) + "\n  join anew with a token: troupe token create > token");
  }
  if (hello.role != who.role) {
    return MakeError(ErrorCode::kJoinRefused, std::string("its certificate is for the role ") +
                                                  wire::NameOf(who.role) + ", not for " +
                                                  wire::NameOf(hello.role));
  }
  admitted.proof = Proof::kCertificate;
  admitted.subject = who.id;
  admitted.token = who.token;
  return {};
}

Status AdmitByToken(const wire::Hello& hello, const PeerInfo& peer, const SessionRules& rules,
                    std::uint64_t now_us, Admitted& admitted) {
  const std::optional<TokenRecord> record =
      rules.find_token ? rules.find_token(hello.token_id) : std::nullopt;
  if (!record) return UnknownToken();
  TROUPE_TRY(VerifyProof(*record, hello.role, peer.exporter, hello.proof, now_us));
  admitted.proof = Proof::kToken;
  admitted.token = hello.token_id;
  return {};
}

Status NothingShown(const PeerInfo& peer) {
  if (!peer.certificate.problem.ok()) return peer.certificate.problem;
  return MakeError(ErrorCode::kJoinRefused,
                   "neither a token nor a certificate was shown\n  make a token on the head: "
                   "troupe token create > token");
}

Status NoLocalClients() {
  return MakeError(ErrorCode::kJoinRefused,
                   "this head was started with --no-local-clients: its user's processes need a "
                   "token like all others\n"
                   "  give its address and a client token: --address HOST:PORT --token-file FILE, "
                   "or TROUPE_TOKEN_FILE=FILE");
}

wire::Message Answer(std::uint64_t reply_to, wire::Body body) {
  wire::Message message;
  message.reply_to = reply_to;
  message.body = std::move(body);
  return message;
}

Task<Status> Refuse(std::shared_ptr<Connection> connection, std::uint64_t reply_to, Status why) {
  wire::Refused refused;
  refused.code = static_cast<std::uint16_t>(ErrorCodeOf(why));
  refused.text = MessageOf(why);
  wire::Message answer = Answer(reply_to, std::move(refused));
  if (connection->Send(answer).ok()) co_await connection->Finish(kRefusalLimit);
  connection->Close(why);
  co_return why;
}

// On the executor for signing: it reads what does not change once the rules are in use.
Task<StatusOr<wire::Welcome>> MakeWelcome(const Admitted& admitted, const SessionRules& rules,
                                          std::uint64_t now_us) {
  wire::Welcome welcome;
  welcome.version = admitted.version;
  welcome.cluster_id = rules.cluster;
  welcome.head_incarnation = rules.head_incarnation;
  welcome.session = admitted.session;
  welcome.subject = NodeId(admitted.subject);
  welcome.ca_certificate = rules.ca_pem;
  welcome.wall_time_us = now_us;
  welcome.name = rules.name;
  if (!admitted.hello.csr.empty()) {
    if (rules.authority == nullptr) {
      co_return MakeError(ErrorCode::kInvalid, "certificates are issued by the head only");
    }
    TROUPE_CO_ASSIGN(welcome.certificate,
                     rules.authority->Issue(admitted.hello.csr, admitted.role, admitted.subject,
                                            now_us, admitted.token));
  }
  co_return welcome;
}

Task<StatusOr<wire::Welcome>> MakeWelcomeBeside(const Admitted& admitted, const SessionRules& rules,
                                                std::uint64_t now_us) {
  auto making = MakeWelcome(admitted, rules, now_us);
  if (!rules.signing || admitted.hello.csr.empty()) co_return co_await std::move(making);
  co_return co_await async::asio::co_spawn(*rules.signing, std::move(making),
                                           async::asio::use_awaitable);
}

}  // namespace

StatusOr<Admitted> Decide(const wire::Hello& hello, const PeerInfo& peer, const SessionRules& rules,
                          std::uint64_t now_us, Random& random) {
  Admitted admitted;
  TROUPE_ASSIGN(admitted.version, AgreeOnVersion(hello));
  TROUPE_TRY(CheckCluster(hello, rules));
  if (!MayJoin(hello.role)) {
    return MakeError(ErrorCode::kInvalid,
                     std::string("nobody joins with the role ") + wire::NameOf(hello.role));
  }
  admitted.role = hello.role;
  if (peer.local) {
    // The listener lets in the same user only.
    if (hello.role == wire::Role::kClient && !rules.local_clients) return NoLocalClients();
    admitted.proof = Proof::kSameUser;
    admitted.subject = hello.subject;
  } else if (peer.certificate.identity) {
    TROUPE_TRY(AdmitByCertificate(hello, peer, rules, admitted));
  } else if (!hello.token_id.IsNil()) {
    TROUPE_TRY(AdmitByToken(hello, peer, rules, now_us, admitted));
  } else {
    return NothingShown(peer);
  }
  if (admitted.subject == Id128()) admitted.subject = NodeId::Random(random);
  admitted.session = SessionId::Random(random);
  admitted.hello = hello;
  return admitted;
}

Task<StatusOr<Admitted>> Authenticate(std::shared_ptr<Connection> connection,
                                      const SessionRules& rules, const Clock& clock,
                                      Random& random) {
  auto receiving = connection->Receive();
  std::string what = "the first message of " + connection->peer().address;
  StatusOr<wire::Message> first =
      co_await async::WithDeadline(std::move(receiving), Duration(kHelloLimit), std::move(what));
  if (!first.ok()) {
    connection->Close(first.status());
    co_return first.status();
  }
  const auto* hello = wire::GetIf<wire::Hello>(&first->body);
  if (hello == nullptr) {
    Status why = MakeError(ErrorCode::kInvalid, "the first message must be a Hello");
    co_return co_await Refuse(connection, first->id, std::move(why));
  }
  const std::uint64_t now_us = clock.WallTimeUs();
  StatusOr<Admitted> admitted = Decide(*hello, connection->peer(), rules, now_us, random);
  if (!admitted.ok()) co_return co_await Refuse(connection, first->id, admitted.status());
  // Before anything waits: another peer may hold the same single-use token.
  if (admitted->proof == Proof::kToken && rules.on_token_used) rules.on_token_used(hello->token_id);
  StatusOr<wire::Welcome> welcome = co_await MakeWelcomeBeside(*admitted, rules, now_us);
  if (!welcome.ok()) co_return co_await Refuse(connection, first->id, welcome.status());
  if (!welcome->certificate.empty()) {
    TROUPE_CO_ASSIGN(const Certificate issued, Certificate::FromPem(welcome->certificate));
    admitted->issued_key_hash = issued.KeyHash();
  }
  connection->Authenticated();
  wire::Message answer = Answer(first->id, *std::move(welcome));
  TROUPE_CO_TRY(connection->Send(answer));
  co_return admitted;
}

namespace {

/// The Hello to send; fails before anything leaves when the token cannot fit.
StatusOr<wire::Hello> CompleteHello(const JoinOptions& options, const PeerInfo& peer,
                                    std::uint64_t now_us) {
  wire::Hello hello = options.hello;
  hello.version = wire::kProtocolVersion;
  hello.version_min = wire::kProtocolVersionMin;
  hello.wall_time_us = now_us;
  if (options.token) {
    if (options.token->role != hello.role) {
      return MakeError(
          ErrorCode::kJoinRefused,
          std::string("this token is for the role ") + wire::NameOf(options.token->role) +
              ", needed is one for " + wire::NameOf(hello.role) +
              "\n  make one on the head: troupe token create --role " + wire::NameOf(hello.role));
    }
    hello.cluster_id = options.token->cluster();
    hello.token_id = options.token->id;
    hello.proof = TokenProof(TokenKey(*options.token), hello.role, peer.exporter);
  }
  if (options.key) {
    TROUPE_ASSIGN(hello.csr, options.key->SigningRequest());
  }
  return hello;
}

std::string ClockWarning(const wire::Welcome& welcome, std::uint64_t now_us) {
  const bool behind = now_us < welcome.wall_time_us;
  const std::uint64_t skew = behind ? welcome.wall_time_us - now_us : now_us - welcome.wall_time_us;
  if (skew <= kClockWarningUs) return {};
  return "this machine's clock is " + HumanLength(skew) + (behind ? " behind" : " ahead of") +
         " the head's (here " + HumanTime(now_us) + ", there " + HumanTime(welcome.wall_time_us) +
         "): set both by NTP";
}

StatusOr<Joined> ReadAnswer(const wire::Message& answer, const wire::Hello& hello,
                            const JoinOptions& options, std::uint64_t now_us) {
  if (const auto* refused = wire::GetIf<wire::Refused>(&answer.body)) {
    const auto code = static_cast<ErrorCode>(refused->code);
    const bool known = code == ErrorCode::kWrongCluster || code == ErrorCode::kVersionMismatch ||
                       code == ErrorCode::kInvalid;
    return MakeError(known ? code : ErrorCode::kJoinRefused,
                     "joining was refused: " + refused->text);
  }
  const auto* welcome = wire::GetIf<wire::Welcome>(&answer.body);
  if (welcome == nullptr)
    return MakeError(ErrorCode::kInvalid, "it answered a Hello with something else");
  if (welcome->version < wire::kProtocolVersionMin || welcome->version > wire::kProtocolVersion) {
    return MakeError(ErrorCode::kVersionMismatch, "it chose protocol version " +
                                                      std::to_string(welcome->version) +
                                                      ", which was not offered");
  }
  if (!hello.cluster_id.IsNil() && welcome->cluster_id != hello.cluster_id) {
    return MakeError(ErrorCode::kWrongCluster, "it is cluster " + welcome->cluster_id.Short() +
                                                   ", expected was " + hello.cluster_id.Short());
  }
  Joined joined;
  joined.welcome = *welcome;
  joined.clock_warning = ClockWarning(*welcome, now_us);
  if (options.key) {
    TROUPE_ASSIGN(joined.credentials,
                  MakeCredentials(*options.key, welcome->certificate, welcome->ca_certificate));
    // A certificate that is not valid here and now would fail later, at a place nobody looks.
    const auto problem = ValidityProblem(joined.credentials->certificate.validity(), now_us);
    if (problem) return MakeError(ErrorCode::kJoinRefused, "the certificate it issued " + *problem);
  }
  return joined;
}

}  // namespace

Task<StatusOr<Joined>> Join(std::shared_ptr<Connection> connection, JoinOptions options,
                            const Clock& clock) {
  const std::string address = connection->peer().address;
  StatusOr<wire::Hello> hello = CompleteHello(options, connection->peer(), clock.WallTimeUs());
  if (!hello.ok()) {
    connection->Close(hello.status());
    co_return hello.status();
  }
  wire::Message first;
  first.id = 1;
  first.body = *hello;
  TROUPE_CO_TRY(connection->Send(first));
  auto receiving = connection->Receive();
  std::string what = address + " to answer the Hello";
  StatusOr<wire::Message> answer =
      co_await async::WithDeadline(std::move(receiving), options.limit, std::move(what));
  if (!answer.ok()) {
    connection->Close(answer.status());
    co_return answer.status();
  }
  StatusOr<Joined> joined = ReadAnswer(*answer, *hello, options, clock.WallTimeUs());
  if (joined.ok()) co_return joined;
  Status failed =
      MakeError(ErrorCodeOf(joined.status()), address + ": " + MessageOf(joined.status()));
  connection->Close(failed);
  co_return failed;
}

}  // namespace troupe::net
