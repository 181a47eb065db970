#include "runtime/net/sealer.h"

#include <openssl/rand.h>

#include <utility>

#include "runtime/net/openssl.h"

namespace troupe::net {
namespace {

constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;

using CipherPtr = std::unique_ptr<EVP_CIPHER_CTX, OpenSslFree<EVP_CIPHER_CTX_free>>;

unsigned char* At(std::string& text, std::size_t at) {
  return reinterpret_cast<unsigned char*>(text.data()) + at;
}
const unsigned char* At(std::string_view text, std::size_t at) {
  return reinterpret_cast<const unsigned char*>(text.data()) + at;
}

Status Damaged() {
  ERR_clear_error();
  return MakeError(ErrorCode::kInvalid, "sealed with another key, or changed since");
}

}  // namespace

StatusOr<std::string> Sealer::Seal(std::string_view plain) const {
  std::string out(kNonceBytes + plain.size() + kTagBytes, '\0');
  if (RAND_bytes(At(out, 0), kNonceBytes) != 1) return OpenSslError("get random bytes");
  const CipherPtr cipher(EVP_CIPHER_CTX_new());
  int size = 0;
  int rest = 0;
  const bool done =
      cipher &&
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, At(key_.Reveal(), 0),
                         At(out, 0)) == 1 &&
      EVP_EncryptUpdate(cipher.get(), At(out, kNonceBytes), &size, At(plain, 0),
                        static_cast<int>(plain.size())) == 1 &&
      EVP_EncryptFinal_ex(cipher.get(), At(out, kNonceBytes + static_cast<std::size_t>(size)),
                          &rest) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes,
                          At(out, kNonceBytes + plain.size())) == 1;
  if (!done) return OpenSslError("encrypt");
  return out;
}

StatusOr<std::string> Sealer::Open(std::string_view sealed) const {
  if (sealed.size() < kNonceBytes + kTagBytes) return Damaged();
  const std::size_t length = sealed.size() - kNonceBytes - kTagBytes;
  std::string tag(sealed.substr(kNonceBytes + length));
  std::string out(length + 1, '\0');  // a byte more: there is always a place to write to
  const CipherPtr cipher(EVP_CIPHER_CTX_new());
  int size = 0;
  int rest = 0;
  const bool done =
      cipher &&
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, At(key_.Reveal(), 0),
                         At(sealed, 0)) == 1 &&
      EVP_DecryptUpdate(cipher.get(), At(out, 0), &size, At(sealed, kNonceBytes),
                        static_cast<int>(length)) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, At(tag, 0)) == 1 &&
      EVP_DecryptFinal_ex(cipher.get(), At(out, static_cast<std::size_t>(size)), &rest) == 1;
  if (!done) return Damaged();
  out.resize(length);
  return out;
}

}  // namespace troupe::net
