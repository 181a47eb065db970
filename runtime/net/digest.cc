#include "runtime/net/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <array>

#include "runtime/base/check.h"

namespace troupe::net {
namespace {

constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

int ValueOf(char c) {
  if (c >= 'a' && c <= 'z') return c - 'a';
  if (c >= '2' && c <= '7') return c - '2' + 26;
  return -1;
}

}  // namespace

std::string Sha256(std::string_view bytes) {
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  unsigned size = 0;
  const int ok = EVP_Digest(bytes.data(), bytes.size(), Bytes(out), &size, EVP_sha256(), nullptr);
  TROUPE_CHECK(ok == 1 && size == out.size(), "SHA-256");
  return out;
}

std::string HmacSha256(std::string_view key, std::string_view bytes) {
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  unsigned size = 0;
  const unsigned char* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   Bytes(bytes), bytes.size(), Bytes(out), &size);
  TROUPE_CHECK(done != nullptr && size == out.size(), "HMAC-SHA-256");
  return out;
}

Secret HkdfSha256(std::string_view secret, std::string_view salt, std::string_view info) {
  const Secret pseudo_random(HmacSha256(salt, secret));
  std::string block(info);
  block += '\1';  // a single block of output is enough
  return Secret(HmacSha256(pseudo_random.Reveal(), block));
}

bool ConstantTimeEqual(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string Base32(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() * 8 + 4) / 5);
  std::uint32_t pending = 0;
  int bits = 0;
  for (const char c : bytes) {
    pending = pending << 8 | static_cast<unsigned char>(c);
    for (bits += 8; bits >= 5; bits -= 5) text += kAlphabet[pending >> (bits - 5) & 31];
  }
  if (bits > 0) text += kAlphabet[pending << (5 - bits) & 31];
  return text;
}

std::optional<std::string> FromBase32(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() * 5 / 8);
  std::uint32_t pending = 0;
  int bits = 0;
  for (const char c : text) {
    const int value = ValueOf(c);
    if (value < 0) return std::nullopt;
    pending = pending << 5 | static_cast<std::uint32_t>(value);
    bits += 5;
    if (bits >= 8) {
      bytes += static_cast<char>(pending >> (bits - 8) & 255);
      bits -= 8;
    }
  }
  // Leftover bits must be the zero filling of the last byte, so that one value has one text.
  if (bits >= 5 || (pending & ((1u << bits) - 1)) != 0) return std::nullopt;
  return bytes;
}

namespace {

// Eight tables: a word at a time ("slicing by 8"), since journals and frames check megabytes.
constexpr std::array<std::array<std::uint32_t, 256>, 8> MakeCrcTables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0x82F63B78u & (0u - (crc & 1)));
    tables[0][i] = crc;
  }
  for (std::uint32_t i = 0; i < 256; ++i) {
    for (std::size_t t = 1; t < 8; ++t) {
      tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
    }
  }
  return tables;
}
constexpr auto kCrcTables = MakeCrcTables();

}  // namespace

std::uint32_t Crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  std::size_t i = 0;
  const auto at = [&bytes](std::size_t k) { return static_cast<unsigned char>(bytes[k]); };
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint32_t mixed = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      mixed ^= kCrcTables[7 - k][at(i + k) ^ (crc >> (8 * k) & 0xff)];
    }
    for (std::size_t k = 4; k < 8; ++k) mixed ^= kCrcTables[7 - k][at(i + k)];
    crc = mixed;
  }
  for (; i < bytes.size(); ++i) crc = crc >> 8 ^ kCrcTables[0][(crc ^ at(i)) & 0xff];
  return ~crc;
}

}  // namespace troupe::net
