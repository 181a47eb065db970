#include "runtime/client/process_identity.h"

#include <utility>

#include "runtime/async/real_clock.h"
#include "runtime/base/log.h"

namespace troupe::client {
namespace {

StatusOr<std::shared_ptr<const IdentityShown>> Show(net::Credentials credentials) {
  TROUPE_ASSIGN(auto server,
                net::TlsContext::ForServer(credentials, net::TlsContext::Clients::kRequired,
                                           async::RealClock::Shared()));
  TROUPE_ASSIGN(auto client, net::TlsContext::ForClient(credentials, async::RealClock::Shared()));
  return std::make_shared<const IdentityShown>(
      IdentityShown{std::move(credentials), std::move(server), std::move(client)});
}

}  // namespace

ProcessIdentity::ProcessIdentity(std::shared_ptr<ControlClient> control,
                                 std::optional<net::Credentials> credentials)
    : control_(std::move(control)), joined_with_(std::move(credentials)) {}

StatusOr<std::shared_ptr<const IdentityShown>> ProcessIdentity::Get() {
  const MutexLock lock(mutex_);
  if (!shown_ && joined_with_) {
    TROUPE_ASSIGN(shown_, Show(*std::exchange(joined_with_, std::nullopt)));
  }
  if (shown_) {
    const net::Validity life = shown_->credentials.certificate.validity();
    const std::uint64_t now_us = async::RealClock::Shared().WallTimeUs();
    if (!net::RenewalDue(life, now_us) || async::RealClock::Shared().Now() < renew_after_)
      return shown_;
    auto renewed = Ask();
    if (renewed.ok()) shown_ = *renewed;
    // A certificate that is due again already was issued by a clock that is far from this one.
    if (net::RenewalDue(shown_->credentials.certificate.validity(), now_us)) {
      renew_after_ = async::RealClock::Shared().Now() + kRenewPause;
    }
    if (renewed.ok()) return shown_;
    if (net::ValidityProblem(life, now_us)) return renewed.status();
    Log(LogLevel::kWarning, "this process's certificate was not renewed",
        {{"why", MessageOf(renewed.status())}});
    return shown_;
  }
  TROUPE_ASSIGN(shown_, Ask());
  return shown_;
}

StatusOr<std::shared_ptr<const IdentityShown>> ProcessIdentity::Ask() {
  net::PrivateKey key = net::PrivateKey::Generate();
  wire::CertifyProcess ask;
  TROUPE_ASSIGN(ask.request, key.SigningRequest());
  wire::Message request;
  request.body = std::move(ask);
  StatusOr<wire::Message> answer = control_->Request(std::move(request), Duration(kCertifyLimit));
  if (!answer.ok()) {
    return MakeError(ErrorCodeOf(answer.status()),
                     "no certificate for calls to other hosts: " + MessageOf(answer.status()));
  }
  const auto* certificate = wire::GetIf<wire::ProcessCertificate>(&answer->body);
  if (certificate == nullptr) {
    return MakeError(ErrorCode::kInvalid, control_->peer() + " answered CertifyProcess with " +
                                              std::string(wire::NameOf(answer->body)));
  }
  TROUPE_ASSIGN(
      net::Credentials credentials,
      net::MakeCredentials(std::move(key), certificate->certificate, certificate->ca_certificate));
  return Show(std::move(credentials));
}

}  // namespace troupe::client
