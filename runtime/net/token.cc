#include "runtime/net/token.h"

#include <cstdio>
#include <optional>
#include <vector>

#include "runtime/net/certificate.h"
#include "runtime/net/digest.h"
#include "runtime/net/human_time.h"

namespace troupe::net {
namespace {

constexpr std::string_view kVersion = "rt1";
constexpr std::size_t kSecretBytes = 16;
constexpr char kNewToken[] = "\n  get a new one on the head: troupe token create > token";

std::string BytesOf(const TokenId& id) {
  std::string bytes(16, '\0');
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[7 - i] = static_cast<char>(id.hi >> (8 * i) & 255);
    bytes[15 - i] = static_cast<char>(id.lo >> (8 * i) & 255);
  }
  return bytes;
}

TokenId IdFromBytes(std::string_view bytes) {
  std::uint64_t halves[2] = {0, 0};
  for (std::size_t i = 0; i < 16; ++i) {
    halves[i / 8] = halves[i / 8] << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return TokenId(halves[0], halves[1]);
}

std::optional<wire::Role> TokenRole(std::string_view name) {
  for (const wire::Role role : {wire::Role::kWorker, wire::Role::kClient, wire::Role::kObserver}) {
    if (name == wire::NameOf(role)) return role;
  }
  return std::nullopt;
}

std::string CheckSum(std::string_view text) {
  char hex[16];
  std::snprintf(hex, sizeof hex, "%08x", Crc32c(text));
  return hex;
}

Status Unusable(const std::string& why) {
  return MakeError(ErrorCode::kInvalid, "the token cannot be used: " + why + kNewToken);
}
Status Refusal(const std::string& why) {
  return MakeError(ErrorCode::kJoinRefused, "the token was refused: " + why + kNewToken);
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string_view> SplitAtDots(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t dot = text.find('.');
    parts.push_back(text.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    text.remove_prefix(dot + 1);
  }
}

}  // namespace

ClusterId Token::cluster() const { return ClusterIdOf(ca_key_hash); }

StatusOr<Token> MakeToken(wire::Role role, std::string_view ca_key_hash, Random& random) {
  if (!TokenRole(wire::NameOf(role))) {
    return MakeError(ErrorCode::kInvalid, "a token is for the role worker, client or observer");
  }
  Token token;
  token.role = role;
  token.ca_key_hash = std::string(ca_key_hash);
  token.id = TokenId::Random(random);
  const std::uint64_t high = random.Next();
  token.secret = Secret(BytesOf(TokenId(high, random.Next())));
  return token;
}

Secret FormatToken(const Token& token) {
  const Secret credential(BytesOf(token.id) + std::string(token.secret.Reveal()));
  std::string text = std::string(kVersion) + "." + wire::NameOf(token.role) + "." +
                     Base32(token.ca_key_hash) + "." + Base32(credential.Reveal());
  const std::string sum = CheckSum(text);
  text += "." + sum;
  return Secret(std::move(text));
}

StatusOr<Token> ParseToken(const Secret& text) {
  const std::string_view trimmed = Trim(text.Reveal());
  if (trimmed.empty()) return Unusable("it is empty");
  if (trimmed.size() > kTokenTextMax)
    return Unusable("it is far too long; is this the right file?");
  const std::vector<std::string_view> parts = SplitAtDots(trimmed);
  if (parts[0] != kVersion) {
    return Unusable("it does not begin with \"rt1.\", so it is not a token of this version");
  }
  if (parts.size() == 4) {
    return Unusable(
        "it has 4 parts instead of 5: either it was copied only in part, or the hash of the "
        "cluster's certificate is missing, without which anyone could answer in its place");
  }
  if (parts.size() != 5) {
    return Unusable("it has " + std::to_string(parts.size()) + " parts instead of 5: " +
                    (parts.size() < 5 ? "it was copied only in part"
                                      : "something else was copied together with it"));
  }
  const std::string_view summed = trimmed.substr(0, trimmed.size() - parts[4].size() - 1);
  if (!ConstantTimeEqual(parts[4], CheckSum(summed))) {
    return Unusable("its check sum does not match: a character was changed or lost in copying");
  }
  const std::optional<wire::Role> role = TokenRole(parts[1]);
  if (!role) return Unusable("its role is none of worker, client, observer");
  const std::optional<std::string> hash = FromBase32(parts[2]);
  if (!hash || hash->size() != 32) {
    return Unusable("the hash of the cluster's certificate in it is missing or malformed");
  }
  std::optional<std::string> credential = FromBase32(parts[3]);
  if (!credential || credential->size() != 16 + kSecretBytes) {
    return Unusable("its secret part is malformed");
  }
  const Secret bytes(*std::move(credential));
  Token token;
  token.role = *role;
  token.ca_key_hash = *hash;
  token.id = IdFromBytes(bytes.Reveal());
  token.secret = Secret(std::string(bytes.Reveal().substr(16)));
  return token;
}

Secret TokenKey(const Token& token) {
  return HkdfSha256(token.secret.Reveal(), BytesOf(token.id), "troupe token v1");
}

std::string TokenProof(const Secret& key, wire::Role role, std::string_view exporter) {
  std::string message = "troupe join v1 ";
  message += wire::NameOf(role);
  message += '\0';
  message += exporter;
  return HmacSha256(key.Reveal(), message);
}

TokenRecord RecordOf(const Token& token, std::uint64_t now_us, std::uint64_t lifetime_us,
                     bool single_use) {
  TokenRecord record;
  record.id = token.id;
  record.role = token.role;
  record.key = TokenKey(token);
  record.created_us = now_us;
  record.expires_us = now_us + lifetime_us;
  record.single_use = single_use;
  return record;
}

Status UnknownToken() { return Refusal("it is wrong, or was deleted on the head"); }

namespace {

Status CheckInForce(const TokenRecord& record, std::uint64_t now_us) {
  if (record.revoked) return Refusal("it was revoked");
  if (now_us >= record.expires_us) {
    return Refusal("it expired " + HumanLength(now_us - record.expires_us) + " ago");
  }
  return {};
}

}  // namespace

Status VerifyProof(const TokenRecord& record, wire::Role role, std::string_view exporter,
                   std::string_view proof, std::uint64_t now_us) {
  // A session without an exporter is not TLS: a proof over nothing could be replayed.
  if (exporter.empty()) return Refusal("it was shown on a connection that is not encrypted");
  if (!ConstantTimeEqual(TokenProof(record.key, role, exporter), proof)) return UnknownToken();
  TROUPE_TRY(CheckInForce(record, now_us));
  if (record.single_use && record.used_us != 0) {
    return Refusal("it is for a single use and was used at " + HumanTime(record.used_us));
  }
  if (role != record.role) {
    return Refusal(std::string("it is for the role ") + wire::NameOf(record.role) + ", not for " +
                   wire::NameOf(role));
  }
  return {};
}

Status VerifyBearer(const TokenRecord& record, const Token& token, std::uint64_t now_us) {
  const Secret key = TokenKey(token);
  // The role is a part of the text and not of the secret: who changes it has another token.
  if (!ConstantTimeEqual(record.key.Reveal(), key.Reveal()) || token.role != record.role) {
    return UnknownToken();
  }
  TROUPE_TRY(CheckInForce(record, now_us));
  if (record.single_use) {
    return Refusal("it is for a single use: HTTP requests need one that is not (--single-use)");
  }
  return {};
}

}  // namespace troupe::net
