#include "runtime/net/credentials.h"

#include <utility>

#include "runtime/net/files.h"
#include "runtime/net/openssl.h"

namespace troupe::net {

StatusOr<Credentials> MakeCredentials(PrivateKey key, std::string_view certificate_pem,
                                      std::string_view ca_pem) {
  TROUPE_ASSIGN(Certificate certificate, Certificate::FromPem(certificate_pem));
  TROUPE_ASSIGN(Certificate ca, Certificate::FromPem(ca_pem));
  if (certificate.KeyHash() != key.PublicHash()) {
    return MakeError(ErrorCode::kInvalid, "the certificate was issued for another key");
  }
  EVP_PKEY* ca_key = X509_get0_pubkey(ca.get());
  const bool signed_by_ca = ca_key != nullptr && X509_verify(certificate.get(), ca_key) == 1;
  ERR_clear_error();
  if (!signed_by_ca) {
    return MakeError(ErrorCode::kWrongCluster, "the certificate was issued by another cluster");
  }
  return Credentials{std::move(key), std::move(certificate), std::move(ca)};
}

StatusOr<Credentials> LoadCredentials(const std::string& folder, const std::string& name) {
  const std::string base = folder + "/" + name;
  TROUPE_ASSIGN(const Secret key_pem, ReadSecretFile(base + ".key"));
  TROUPE_ASSIGN(const std::string certificate_pem, ReadSmallFile(base + ".crt"));
  TROUPE_ASSIGN(const std::string ca_pem, ReadSmallFile(folder + "/ca.crt"));
  StatusOr<PrivateKey> key = PrivateKey::FromPem(key_pem);
  if (!key.ok()) return MakeError(ErrorCode::kInvalid, base + ".key: " + MessageOf(key.status()));
  const StatusOr<Certificate> ca = Certificate::FromPem(ca_pem);
  if (!ca.ok()) {
    return MakeError(ErrorCode::kInvalid, folder + "/ca.crt: " + MessageOf(ca.status()));
  }
  StatusOr<Credentials> made = MakeCredentials(*std::move(key), certificate_pem, ca_pem);
  if (made.ok()) return made;
  return MakeError(ErrorCodeOf(made.status()), base + ".crt: " + MessageOf(made.status()));
}

Status StoreCredentials(const std::string& folder, const std::string& name,
                        const Credentials& credentials) {
  const std::string base = folder + "/" + name;
  TROUPE_TRY(ReplaceFile(base + ".key", credentials.key.Pem().Reveal(), 0600));
  TROUPE_TRY(ReplaceFile(folder + "/ca.crt", credentials.ca.Pem(), 0644));
  return ReplaceFile(base + ".crt", credentials.certificate.Pem(), 0644);
}

}  // namespace troupe::net
