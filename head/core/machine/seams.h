// Services that the reducer needs from outside besides its inputs: chance, and the making of
// tokens.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/random.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

/// Makes join tokens; production: runtime/net, tests: a counter.
class TokenMint {
 public:
  virtual ~TokenMint() = default;
  struct Minted {
    std::string text;  // text for its holder, given once
    wire::TokenWritten record;  // id, role, key, created and expiry
  };
  virtual Minted Mint(wire::Role role, std::uint64_t now_us, std::uint64_t lifetime_us,
                      bool single_use) = 0;
};

/// Both must outlive the core.
struct Seams {
  Random& random;
  TokenMint& mint;
};

}  // namespace troupe::head
