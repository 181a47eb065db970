// Tokens of runtime/net for the reducer.
#pragma once

#include <optional>
#include <string>

#include "head/core/machine/seams.h"
#include "runtime/net/token.h"

namespace troupe::head {

class NetTokenMint final : public TokenMint {
 public:
  /// `random` must outlive it and be the operating system's.
  NetTokenMint(std::string ca_key_hash, Random& random)
      : ca_key_hash_(std::move(ca_key_hash)), random_(random) {}
  Minted Mint(wire::Role role, std::uint64_t now_us, std::uint64_t lifetime_us,
              bool single_use) override;

 private:
  const std::string ca_key_hash_;
  Random& random_;
};

/// The record the handshake checks a proof against.
net::TokenRecord RecordFrom(const wire::TokenWritten& written);

}  // namespace troupe::head
