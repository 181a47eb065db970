// The seam for randomness, and the seeded generator the simulator and the tests use.
#pragma once

#include <cstdint>

namespace troupe {

class Random {
 public:
  virtual ~Random() = default;
  /// 64 uniformly random bits.
  virtual std::uint64_t Next() = 0;
};

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): small, seedable, good enough for tests and jitter;
/// never for secrets.
class Prng final : public Random {
 public:
  explicit Prng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() override {
    state_ += 0x9E3779B97F4A7C15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, bound); bound > 0.
  std::uint64_t Below(std::uint64_t bound) { return Next() % bound; }
  bool Chance(unsigned permille) { return Below(1000) < permille; }

 private:
  std::uint64_t state_;
};

}  // namespace troupe
