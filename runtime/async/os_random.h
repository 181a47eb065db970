// Randomness of the operating system: for ids, tokens, keys.
//
// View: one process. Thread-safe. It keeps no state, so a forked child never repeats its parent.
// getrandom(2) fails only on a kernel without it; that ends the process, since nothing safe is left
// to do.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/base/random.h"

namespace troupe::async {

class OsRandom final : public Random {
 public:
  std::uint64_t Next() override;
};

/// `size` random bytes.
std::string RandomBytes(std::size_t size);

}  // namespace troupe::async
