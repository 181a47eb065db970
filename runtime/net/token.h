// Join tokens: what lets a new node or a remote client into a cluster.
//
// Text: `rt1.<role>.<base32(SHA-256(CA key))>.<base32(16 bytes id, 16 bytes secret)>.<crc32c>`.
// The CA hash pins whom the token may be shown to; a token without one is refused. The secret is
// never sent: the holder proves it by an HMAC over the TLS exporter, under a key derived from it.
// The head keeps only that derived key (TokenRecord), never the token: whoever reads the head's
// journal can join while the token lives, but cannot print the token.
// Pure functions and values; wall times in microseconds since 1970. Errors are for the person who
// pasted the token, and never repeat its text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/ids.h"
#include "runtime/base/random.h"
#include "runtime/base/secret.h"
#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

namespace troupe::net {

inline constexpr std::uint64_t kTokenLifetimeUs = 24ull * 3600 * 1'000'000;
inline constexpr std::size_t kTokenTextMax = 512;

struct Token {
  wire::Role role = wire::Role::kNone;  // worker, client or observer
  std::string ca_key_hash;              // 32 bytes
  TokenId id;
  Secret secret;  // 16 bytes

  /// The cluster it belongs to.
  ClusterId cluster() const;
};

/// A new token; `random` must be the operating system's outside tests. kInvalid for another role.
StatusOr<Token> MakeToken(wire::Role role, std::string_view ca_key_hash, Random& random);
Secret FormatToken(const Token& token);
/// Surrounding white space is allowed. kInvalid says what is wrong: cut off, a character changed,
/// no CA hash, an unknown role or version.
StatusOr<Token> ParseToken(const Secret& text);

/// The key the proof is made with and the head stores: HKDF-SHA-256(secret, salt = id).
Secret TokenKey(const Token& token);
/// 32 bytes that prove possession of `key` on this one TLS session (`exporter`) for this role.
std::string TokenProof(const Secret& key, wire::Role role, std::string_view exporter);

/// The head's record of a token.
struct TokenRecord {
  TokenId id;
  wire::Role role = wire::Role::kNone;
  Secret key;
  std::uint64_t created_us = 0;
  std::uint64_t expires_us = 0;
  bool revoked = false;
  bool single_use = false;
  std::uint64_t used_us = 0;  // first use; 0 = never
};
TokenRecord RecordOf(const Token& token, std::uint64_t now_us,
                     std::uint64_t lifetime_us = kTokenLifetimeUs, bool single_use = false);

/// Checks whether a peer that claims `role` and shows `proof` may join now. Errors, all
/// kJoinRefused but told apart in text: wrong, expired (since when), revoked, used, of another
/// role. Only a peer that proves the secret learns more than "wrong".
Status VerifyProof(const TokenRecord& record, wire::Role role, std::string_view exporter,
                   std::string_view proof, std::uint64_t now_us);
/// Checks whether a peer that shows the token itself, as HTTP's `Authorization: Bearer` does, may
/// be let in now. The connection must be encrypted to a head that proved its name. Errors as
/// VerifyProof's; a token for a single use is refused, since each request would be a use.
Status VerifyBearer(const TokenRecord& record, const Token& token, std::uint64_t now_us);
/// The refusal for a token id the head has no record of: the same text as for a wrong secret.
Status UnknownToken();

}  // namespace troupe::net
