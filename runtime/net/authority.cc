#include "runtime/net/authority.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/net/digest.h"
#include "runtime/net/files.h"
#include "runtime/net/human_time.h"
#include "runtime/net/openssl.h"

namespace troupe::net {
namespace {

constexpr std::uint64_t kAuthorityLifetimeUs = 3650 * kDayUs;

bool SetTimes(X509* x509, std::uint64_t now_us, std::uint64_t lifetime_us) {
  const std::uint64_t from = now_us > kBackdateUs ? now_us - kBackdateUs : 0;
  const auto not_before = static_cast<time_t>(from / kSecondUs);
  const auto not_after = static_cast<time_t>((now_us + lifetime_us) / kSecondUs);
  return ASN1_TIME_set(X509_getm_notBefore(x509), not_before) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(x509), not_after) != nullptr;
}

bool SetRandomSerial(X509* x509) {
  BIGNUM* number = BN_new();
  const bool ok = number != nullptr && BN_rand(number, 126, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
                  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)) != nullptr;
  BN_free(number);
  return ok;
}

bool AddExtension(X509* x509, X509V3_CTX* context, int kind, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, context, kind, value.c_str());
  const bool ok = extension != nullptr && X509_add_ext(x509, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return ok;
}

bool IsNumeric(const std::string& name) {
  in6_addr number;
  return inet_pton(AF_INET, name.c_str(), &number) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &number) == 1;
}

bool IsHostName(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.';
  };
  return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), fits);
}

/// `names` in OpenSSL's form. Only letters that mean nothing in it get there.
std::string AlternativeNames(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    const bool numeric = IsNumeric(name);
    if (!numeric && !IsHostName(name)) continue;
    text += (text.empty() ? "" : ",") + std::string(numeric ? "IP:" : "DNS:") + name;
  }
  return text;
}

bool SetName(X509_NAME* name, const std::string& text) {
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

StatusOr<Certificate> SelfSigned(const PrivateKey& key, std::uint64_t now_us) {
  const X509Ptr x509(X509_new());
  const std::string cluster = ClusterIdOf(key.PublicHash()).Hex();
  X509V3_CTX context;
  X509V3_set_ctx(&context, x509.get(), x509.get(), nullptr, nullptr, 0);
  const bool ok =
      X509_set_version(x509.get(), X509_VERSION_3) && SetRandomSerial(x509.get()) &&
      SetTimes(x509.get(), now_us, kAuthorityLifetimeUs) &&
      SetName(X509_get_subject_name(x509.get()), "troupe cluster " + cluster) &&
      X509_set_issuer_name(x509.get(), X509_get_subject_name(x509.get())) &&
      X509_set_pubkey(x509.get(), key.get()) &&
      AddExtension(x509.get(), &context, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      AddExtension(x509.get(), &context, NID_key_usage, "critical,keyCertSign") &&
      AddExtension(x509.get(), &context, NID_subject_key_identifier, "hash") &&
      X509_sign(x509.get(), key.get(), nullptr) > 0;
  if (!ok) return OpenSslError("make the cluster's certificate");
  return Certificate::Share(x509.get());
}

}  // namespace

Authority::Authority(PrivateKey key, Certificate certificate)
    : key_(std::move(key)), certificate_(std::move(certificate)), key_hash_(key_.PublicHash()) {}

StatusOr<Authority> Authority::Of(PrivateKey key, std::uint64_t now_us) {
  TROUPE_ASSIGN(Certificate certificate, SelfSigned(key, now_us));
  return Authority(std::move(key), std::move(certificate));
}

StatusOr<Authority> Authority::Create(std::uint64_t now_us) {
  return Of(PrivateKey::Generate(), now_us);
}

StatusOr<Authority> Authority::FromSeed(std::string_view seed, std::uint64_t now_us) {
  TROUPE_ASSIGN(PrivateKey key, PrivateKey::FromSeed(seed));
  return Of(std::move(key), now_us);
}

StatusOr<Authority> Authority::LoadOrCreate(const std::string& folder, std::uint64_t now_us) {
  const std::string key_path = folder + "/ca.key", certificate_path = folder + "/ca.crt";
  const StatusOr<Secret> pem = ReadSecretFile(key_path);
  if (!pem.ok() && ErrorCodeOf(pem.status()) == ErrorCode::kNotFound) {
    TROUPE_ASSIGN(Authority made, Create(now_us));
    TROUPE_TRY(CreateSecretFile(key_path, made.key_.Pem()));
    TROUPE_TRY(ReplaceFile(certificate_path, made.certificate_.Pem(), 0644));
    return made;
  }
  if (!pem.ok()) return pem.status();
  StatusOr<PrivateKey> key = PrivateKey::FromPem(*pem);
  if (!key.ok()) {
    return MakeError(ErrorCode::kInvalid,
                     key_path + ": " + MessageOf(key.status()) +
                         "\n  restore it from a copy: without it no node or client of this "
                         "cluster trusts its head; troupe start --head --new makes another one");
  }
  const StatusOr<std::string> text = ReadSmallFile(certificate_path);
  if (text.ok()) {
    StatusOr<Certificate> certificate = Certificate::FromPem(*text);
    if (certificate.ok() && certificate->KeyHash() == key->PublicHash()) {
      return Authority(*std::move(key), *std::move(certificate));
    }
    return MakeError(ErrorCode::kInvalid, certificate_path + " does not belong to " + key_path +
                                              "\n  move it away: it is made again from the key");
  }
  TROUPE_ASSIGN(Authority made, Of(*std::move(key), now_us));
  TROUPE_TRY(ReplaceFile(certificate_path, made.certificate_.Pem(), 0644));
  return made;
}

Secret Authority::Derived(std::string_view purpose) const {
  std::array<unsigned char, 32> raw{};
  std::size_t size = raw.size();
  const int ok = EVP_PKEY_get_raw_private_key(key_.get(), raw.data(), &size);
  TROUPE_CHECK(ok == 1 && size == raw.size(), OpenSslText("read a private key"));
  Secret made =
      HkdfSha256({reinterpret_cast<const char*>(raw.data()), raw.size()}, key_hash_, purpose);
  OPENSSL_cleanse(raw.data(), raw.size());
  return made;
}

std::uint64_t Authority::LifetimeOfUs(wire::Role role) const {
  const bool node = role == wire::Role::kWorker || role == wire::Role::kHead;
  return node ? node_lifetime_us_ : LifetimeUs(role);
}

StatusOr<std::string> Authority::Issue(std::string_view signing_request, wire::Role role,
                                       const Id128& id, std::uint64_t now_us,
                                       const TokenId& token) const {
  const auto* der = reinterpret_cast<const unsigned char*>(signing_request.data());
  const X509ReqPtr request(d2i_X509_REQ(nullptr, &der, static_cast<long>(signing_request.size())));
  EVP_PKEY* subject = request ? X509_REQ_get0_pubkey(request.get()) : nullptr;
  const bool good = subject != nullptr && EVP_PKEY_get_base_id(subject) == EVP_PKEY_ED25519 &&
                    X509_REQ_verify(request.get(), subject) == 1;
  ERR_clear_error();
  if (!good) return MakeError(ErrorCode::kInvalid, "the certificate request is malformed");
  Identity identity;
  identity.cluster = cluster_id();
  identity.role = role;
  identity.id = id;
  identity.token = token;
  return IssueTo(subject, identity, now_us, LifetimeOfUs(role));
}

StatusOr<std::string> Authority::IssueFor(const PrivateKey& subject, wire::Role role,
                                          const Id128& id, std::uint64_t now_us,
                                          std::uint64_t lifetime_us) const {
  Identity identity;
  identity.cluster = cluster_id();
  identity.role = role;
  identity.id = id;
  return IssueTo(subject.get(), identity, now_us, lifetime_us);
}

StatusOr<std::string> Authority::IssueTo(EVP_PKEY* subject, const Identity& identity,
                                         std::uint64_t now_us, std::uint64_t lifetime_us) const {
  const std::string name = std::string(wire::NameOf(identity.role)) + " " + IdToHex(identity.id);
  return Sign(subject, name, "URI:" + FormatIdentity(identity), "serverAuth,clientAuth", now_us,
              lifetime_us);
}

StatusOr<std::string> Authority::IssueForHttp(const PrivateKey& subject,
                                              const std::vector<std::string>& names,
                                              std::uint64_t now_us,
                                              std::uint64_t lifetime_us) const {
  return Sign(subject.get(), "troupe head", AlternativeNames(names), "serverAuth", now_us,
              lifetime_us);
}

StatusOr<std::string> Authority::Sign(EVP_PKEY* subject, const std::string& common_name,
                                      const std::string& names, const std::string& usage,
                                      std::uint64_t now_us, std::uint64_t lifetime_us) const {
  const X509Ptr x509(X509_new());
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate_.get(), x509.get(), nullptr, nullptr, 0);
  const bool ok = X509_set_version(x509.get(), X509_VERSION_3) && SetRandomSerial(x509.get()) &&
                  SetTimes(x509.get(), now_us, lifetime_us) &&
                  SetName(X509_get_subject_name(x509.get()), common_name) &&
                  X509_set_issuer_name(x509.get(), X509_get_subject_name(certificate_.get())) &&
                  X509_set_pubkey(x509.get(), subject) &&
                  AddExtension(x509.get(), &context, NID_basic_constraints, "critical,CA:FALSE") &&
                  AddExtension(x509.get(), &context, NID_key_usage, "critical,digitalSignature") &&
                  AddExtension(x509.get(), &context, NID_ext_key_usage, usage) &&
                  AddExtension(x509.get(), &context, NID_authority_key_identifier, "keyid") &&
                  AddExtension(x509.get(), &context, NID_subject_alt_name, names) &&
                  X509_sign(x509.get(), key_.get(), nullptr) > 0;
  if (!ok) return OpenSslError("issue a certificate");
  return Certificate::Share(x509.get()).Pem();
}

}  // namespace troupe::net
