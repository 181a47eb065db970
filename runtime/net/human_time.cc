#include "runtime/net/human_time.h"

#include <time.h>

namespace troupe::net {

std::string HumanLength(std::uint64_t length_us) {
  const std::uint64_t seconds = length_us / kSecondUs;
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 120 * 60) return std::to_string(seconds / 60) + " min";
  if (seconds < 48 * 3600) return std::to_string(seconds / 3600) + " h";
  return std::to_string(seconds / 86400) + " days";
}

std::string HumanTime(std::uint64_t wall_us) {
  const auto seconds = static_cast<time_t>(wall_us / kSecondUs);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

}  // namespace troupe::net
