// Numbers in texts of requests: nothing before or behind them.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace troupe::head {

/// False: `text` is no number of that type; `*number` may have changed.
template <class Number>
bool ReadWhole(std::string_view text, Number* number) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, *number);
  return read.ec == std::errc() && read.ptr == end;
}

/// "3-17", as the ids of events are written; nullopt: it is none.
inline std::optional<std::pair<std::uint64_t, std::uint64_t>> ReadPair(std::string_view text) {
  const std::size_t dash = text.find('-');
  std::pair<std::uint64_t, std::uint64_t> pair;
  if (dash == std::string_view::npos || !ReadWhole(text.substr(0, dash), &pair.first) ||
      !ReadWhole(text.substr(dash + 1), &pair.second)) {
    return std::nullopt;
  }
  return pair;
}

}  // namespace troupe::head
