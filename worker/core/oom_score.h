// Order in which the kernel ends processes when memory runs out: the largest of those that run user
// code, first one that uses more than it declared. Never, as long as there is one of those, the
// worker, the zygote, a parked process or a store: others could not go on.
#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe::worker {

// Thousandths of all memory, over what the worker itself was started with. A process takes the
// first on as its first step (bindings/python/troupe/_process/bootstrap.py), so that nothing it
// runs is without it; the worker gives it the second.
inline constexpr int kOomScoreOfUser = 500;
inline constexpr int kOomScoreOver = 900;
inline constexpr int kOomScoreMax = 1000;

/// `declared_bytes` is its memory=; 0: it said nothing, and is never over it.
inline int OomScoreOf(int workers, std::uint64_t resident_bytes, std::uint64_t declared_bytes) {
  const bool over = declared_bytes > 0 && resident_bytes > declared_bytes;
  return std::min(workers + (over ? kOomScoreOver : kOomScoreOfUser), kOomScoreMax);
}

}  // namespace troupe::worker
