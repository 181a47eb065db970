// A mint for tests: tokens are numbered, so that a run is the same each time; their text says
// nothing.
#pragma once

#include <cstdint>

#include "head/core/machine/seams.h"

namespace troupe::head {

class CountingMint final : public TokenMint {
 public:
  Minted Mint(wire::Role role, std::uint64_t now_us, std::uint64_t lifetime_us,
              bool single_use) override {
    Minted minted;
    minted.text = "token-text";
    minted.record.id = TokenId(5, ++count_);
    minted.record.role = role;
    minted.record.created_us = now_us;
    minted.record.expires_us = now_us + lifetime_us;
    minted.record.single_use = single_use;
    return minted;
  }

 private:
  std::uint64_t count_ = 0;
};

}  // namespace troupe::head
