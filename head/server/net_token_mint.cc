#include "head/server/net_token_mint.h"

#include "runtime/base/check.h"

namespace troupe::head {

TokenMint::Minted NetTokenMint::Mint(wire::Role role, std::uint64_t now_us,
                                     std::uint64_t lifetime_us, bool single_use) {
  const StatusOr<net::Token> token = net::MakeToken(role, ca_key_hash_, random_);
  TROUPE_CHECK(token.ok(), MessageOf(token.status()));  // the reducer checked the role
  const net::TokenRecord record = net::RecordOf(*token, now_us, lifetime_us, single_use);
  Minted minted;
  minted.text = std::string(net::FormatToken(*token).Reveal());
  minted.record.id = record.id;
  minted.record.role = record.role;
  minted.record.key = std::string(record.key.Reveal());
  minted.record.created_us = record.created_us;
  minted.record.expires_us = record.expires_us;
  minted.record.single_use = record.single_use;
  return minted;
}

net::TokenRecord RecordFrom(const wire::TokenWritten& written) {
  net::TokenRecord record;
  record.id = written.id;
  record.role = written.role;
  record.key = Secret(written.key);
  record.created_us = written.created_us;
  record.expires_us = written.expires_us;
  record.revoked = written.revoked;
  record.single_use = written.single_use;
  record.used_us = written.used_us;
  return record;
}

}  // namespace troupe::head
