#include "runtime/net/certificate.h"

#include <openssl/pem.h>
#include <time.h>

#include <vector>

#include "runtime/base/check.h"
#include "runtime/net/digest.h"
#include "runtime/net/human_time.h"
#include "runtime/net/openssl.h"

namespace troupe::net {
namespace {

constexpr std::string_view kScheme = "troupe://";
constexpr std::uint64_t kToleratedSkewUs = 60 * kSecondUs;

std::uint64_t WallTimeOf(const ASN1_TIME* time) {
  tm utc{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &utc) != 1) return 0;
  const time_t seconds = timegm(&utc);
  return seconds < 0 ? 0 : static_cast<std::uint64_t>(seconds) * kSecondUs;
}

std::optional<wire::Role> RoleNamed(std::string_view name) {
  for (int i = 1; i <= static_cast<int>(wire::kRoleLast); ++i) {
    const auto role = static_cast<wire::Role>(i);
    if (name == wire::NameOf(role)) return role;
  }
  return std::nullopt;
}

std::string_view TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

}  // namespace

std::string FormatIdentity(const Identity& identity) {
  return std::string(kScheme) + identity.cluster.Hex() + "/" + wire::NameOf(identity.role) + "/" +
         IdToHex(identity.id) + (identity.token.IsNil() ? "" : "/" + identity.token.Hex());
}

StatusOr<Identity> ParseIdentity(std::string_view uri) {
  const Status bad = MakeError(ErrorCode::kInvalid, "not an identity of a Troupe cluster");
  if (uri.substr(0, kScheme.size()) != kScheme) return bad;
  uri.remove_prefix(kScheme.size());
  const std::size_t first = uri.find('/');
  if (first == std::string_view::npos) return bad;
  const std::size_t second = uri.find('/', first + 1);
  if (second == std::string_view::npos) return bad;
  const auto cluster = ClusterId::FromHex(uri.substr(0, first));
  const auto role = RoleNamed(uri.substr(first + 1, second - first - 1));
  const std::size_t third = uri.find('/', second + 1);
  const bool by_token = third != std::string_view::npos;
  const auto id = IdFromHex(uri.substr(second + 1, by_token ? third - second - 1 : third));
  const auto token = by_token ? TokenId::FromHex(uri.substr(third + 1)) : TokenId();
  if (!cluster || !role || !id || !token || (by_token && token->IsNil())) return bad;
  Identity identity;
  identity.cluster = *cluster;
  identity.role = *role;
  identity.id = *id;
  identity.token = *token;
  return identity;
}

std::uint64_t LifetimeUs(wire::Role role) {
  return role == wire::Role::kWorker || role == wire::Role::kHead ? 7 * kDayUs : kDayUs;
}

bool RenewalDue(const Validity& validity, std::uint64_t now_us) {
  const std::uint64_t issued_us = validity.not_before_us + kBackdateUs;
  if (issued_us >= validity.not_after_us || now_us < validity.not_before_us) return true;
  return now_us >= issued_us + (validity.not_after_us - issued_us) / 3 * 2;
}

std::optional<std::string> ValidityProblem(const Validity& validity, std::uint64_t now_us) {
  if (now_us < validity.not_before_us) {
    // The certificate was issued after not_before + the backdating, by a clock we cannot see now.
    const std::uint64_t skew = validity.not_before_us + kBackdateUs - now_us;
    return "is valid only from " + HumanTime(validity.not_before_us) +
           "; this machine's clock reads " + HumanTime(now_us) +
           ", so one of the two clocks is wrong by at least " + HumanLength(skew) +
           " (compare `date -u` on both)";
  }
  if (now_us > validity.not_after_us) {
    return "expired " + HumanLength(now_us - validity.not_after_us) + " ago, at " +
           HumanTime(validity.not_after_us) + "; this machine's clock reads " + HumanTime(now_us);
  }
  return std::nullopt;
}

std::optional<std::string> SkewOfFreshCertificate(const Validity& validity, std::uint64_t now_us) {
  const std::uint64_t issued_us = validity.not_before_us + kBackdateUs;
  const bool behind = now_us < issued_us;
  const std::uint64_t skew = behind ? issued_us - now_us : now_us - issued_us;
  if (skew <= kToleratedSkewUs) return std::nullopt;
  return "this machine's clock is " + HumanLength(skew) + (behind ? " behind" : " ahead of") +
         " the head's (here " + HumanTime(now_us) + ", there " + HumanTime(issued_us) +
         "): set both by NTP";
}

ClusterId ClusterIdOf(std::string_view ca_key_hash) {
  TROUPE_CHECK(ca_key_hash.size() == 32, "a SHA-256 has 32 bytes");
  std::uint64_t halves[2] = {0, 0};
  for (std::size_t i = 0; i < 16; ++i) {
    halves[i / 8] = halves[i / 8] << 8 | static_cast<unsigned char>(ca_key_hash[i]);
  }
  return ClusterId(halves[0], halves[1]);
}

StatusOr<Certificate> Certificate::FromPem(std::string_view pem) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  X509* x509 = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr);
  ERR_clear_error();
  if (x509 == nullptr)
    return MakeError(ErrorCode::kInvalid, "this is not a certificate in PEM form");
  return Certificate(std::shared_ptr<X509>(x509, X509_free));
}

Certificate Certificate::Share(X509* x509) {
  X509_up_ref(x509);
  return Certificate(std::shared_ptr<X509>(x509, X509_free));
}

std::string Certificate::Pem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  TROUPE_CHECK(PEM_write_bio_X509(bio.get(), x509_.get()) == 1, OpenSslText("write a certificate"));
  return BioText(bio.get());
}

StatusOr<Identity> Certificate::identity() const {
  const GeneralNamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(x509_.get(), NID_subject_alt_name, nullptr, nullptr)));
  ERR_clear_error();
  // Exactly one name: a second one could say something else to another reader.
  if (names && sk_GENERAL_NAME_num(names.get()) == 1) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), 0);
    if (name->type == GEN_URI) return ParseIdentity(TextOf(name->d.uniformResourceIdentifier));
  }
  return MakeError(ErrorCode::kInvalid, "the certificate was not issued by a Troupe cluster");
}

Validity Certificate::validity() const {
  Validity validity;
  validity.not_before_us = WallTimeOf(X509_get0_notBefore(x509_.get()));
  validity.not_after_us = WallTimeOf(X509_get0_notAfter(x509_.get()));
  return validity;
}

std::string Certificate::KeyHash() const {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x509_.get()), &der);
  if (size <= 0) return Sha256("");  // matches no pin
  const std::string hash =
      Sha256({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
  OPENSSL_free(der);
  return hash;
}

}  // namespace troupe::net
