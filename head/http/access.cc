#include "head/http/access.h"

#include <optional>
#include <utility>

#include "head/http/head_link.h"
#include "runtime/net/revocations.h"

namespace troupe::head {
namespace {

using async::Task;

Task<StatusOr<HttpCaller>> ByToken(const Secret& text, const net::SessionRules& rules,
                                   async::Executor head, const Clock& clock) {
  TROUPE_CO_ASSIGN(const net::Token token, net::ParseToken(text));
  if (token.cluster() != rules.cluster) {
    co_return MakeError(ErrorCode::kJoinRefused, "the token belongs to another cluster");
  }
  using Record = std::optional<net::TokenRecord>;
  std::function<Record()> find = [&rules, id = token.id] { return rules.find_token(id); };
  auto asking = AskHead<Record>(head, std::move(find));
  TROUPE_CO_ASSIGN(const Record record, co_await std::move(asking));
  if (!record) co_return net::UnknownToken();
  TROUPE_CO_TRY(net::VerifyBearer(*record, token, clock.WallTimeUs()));
  co_return HttpCaller{record->role, token.id.Hex(), token.id};
}

Task<StatusOr<HttpCaller>> ByCertificate(const net::PeerVerdict& verdict,
                                         const net::SessionRules& rules, async::Executor head) {
  if (!verdict.problem.ok()) co_return verdict.problem;
  const net::Identity identity = *verdict.identity;
  std::function<bool()> find = [&rules, identity] { return rules.revoked(identity); };
  auto asking = AskHead<bool>(head, std::move(find));
  TROUPE_CO_ASSIGN(const bool revoked, co_await std::move(asking));
  if (revoked) co_return net::RevokedToken(identity.token);
  co_return HttpCaller{identity.role, IdToHex(identity.id), identity.token};
}

}  // namespace

Task<StatusOr<HttpCaller>> AuthenticateHttp(const HttpRequest& request, const net::PeerInfo& peer,
                                            const net::SessionRules& rules, async::Executor head,
                                            const Clock& clock) {
  if (!request.bearer.empty()) {
    auto by_token = ByToken(request.bearer, rules, head, clock);
    co_return co_await std::move(by_token);
  }
  if (peer.certificate.identity) {
    auto by_certificate = ByCertificate(peer.certificate, rules, head);
    co_return co_await std::move(by_certificate);
  }
  if (!peer.certificate.problem.ok()) co_return peer.certificate.problem;
  co_return MakeError(ErrorCode::kJoinRefused,
                      "neither a token nor a certificate was shown\n  make a token on the head: "
                      "troupe token create --role observer > token, and send it as "
                      "`Authorization: Bearer TOKEN`");
}

}  // namespace troupe::head
