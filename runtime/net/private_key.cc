#include "runtime/net/private_key.h"

#include <openssl/pem.h>

#include "runtime/base/check.h"
#include "runtime/net/digest.h"
#include "runtime/net/openssl.h"

namespace troupe::net {
namespace {

int NoPassPhrase(char*, int, int, void*) { return 0; }  // never prompt on a terminal

}  // namespace

PrivateKey PrivateKey::Generate() {
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  TROUPE_CHECK(key != nullptr, OpenSslText("make an Ed25519 key"));
  return PrivateKey(std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free));
}

StatusOr<PrivateKey> PrivateKey::FromSeed(std::string_view seed) {
  if (seed.size() != 32) return MakeError(ErrorCode::kInvalid, "a key seed must have 32 bytes");
  EVP_PKEY* key = EVP_PKEY_new_raw_private_key(
      EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(seed.data()), seed.size());
  if (key == nullptr) return OpenSslError("make a key of a seed");
  return PrivateKey(std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free));
}

StatusOr<PrivateKey> PrivateKey::FromPem(const Secret& pem) {
  const std::string_view text = pem.Reveal();
  const BioPtr bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassPhrase, nullptr);
  ERR_clear_error();
  if (key == nullptr)
    return MakeError(ErrorCode::kInvalid, "this is not a private key in PEM form");
  std::shared_ptr<EVP_PKEY> owned(key, EVP_PKEY_free);
  if (EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519) {
    return MakeError(ErrorCode::kInvalid, "the private key is not an Ed25519 key");
  }
  return PrivateKey(std::move(owned));
}

Secret PrivateKey::Pem() const {
  const BioPtr bio(BIO_new(BIO_s_secmem()));
  const int ok =
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
  TROUPE_CHECK(ok == 1, OpenSslText("write a private key"));
  return Secret(BioText(bio.get()));
}

std::string PrivateKey::PublicHash() const {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key_.get(), &der);
  TROUPE_CHECK(size > 0, OpenSslText("encode a public key"));
  const std::string hash =
      Sha256({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
  OPENSSL_free(der);
  return hash;
}

StatusOr<std::string> PrivateKey::SigningRequest() const {
  const X509ReqPtr request(X509_REQ_new());
  // The subject is empty on purpose: the issuer alone decides what the certificate says.
  if (!request || X509_REQ_set_version(request.get(), 0) != 1 ||
      X509_REQ_set_pubkey(request.get(), key_.get()) != 1 ||
      X509_REQ_sign(request.get(), key_.get(), nullptr) <= 0) {
    return OpenSslError("make a certificate signing request");
  }
  unsigned char* der = nullptr;
  const int size = i2d_X509_REQ(request.get(), &der);
  if (size <= 0) return OpenSslError("encode a certificate signing request");
  std::string out(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return out;
}

}  // namespace troupe::net
