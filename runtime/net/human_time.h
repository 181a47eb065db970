// Wall times and lengths as people read them in errors.
//
// Pure. Microseconds since 1970 in, as Clock::WallTimeUs gives them.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::net {

inline constexpr std::uint64_t kSecondUs = 1'000'000;
inline constexpr std::uint64_t kHourUs = 3600 * kSecondUs;
inline constexpr std::uint64_t kDayUs = 24 * kHourUs;

/// "40 s", "5 min", "2 h", "3 days": in the largest unit that fits twice, rounded down.
std::string HumanLength(std::uint64_t length_us);
/// "2026-11-21 00:05 UTC".
std::string HumanTime(std::uint64_t wall_us);

}  // namespace troupe::net
