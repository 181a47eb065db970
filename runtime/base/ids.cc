#include "runtime/base/ids.h"

namespace troupe {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

int DigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string IdToHex(const Id128& id) {
  std::string text(32, '0');
  for (int i = 0; i < 16; ++i) {
    text[static_cast<std::size_t>(15 - i)] = kDigits[(id.hi >> (4 * i)) & 15];
    text[static_cast<std::size_t>(31 - i)] = kDigits[(id.lo >> (4 * i)) & 15];
  }
  return text;
}

std::optional<Id128> IdFromHex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  Id128 id;
  for (std::size_t i = 0; i < 32; ++i) {
    const int digit = DigitValue(text[i]);
    if (digit < 0) return std::nullopt;
    std::uint64_t& half = i < 16 ? id.hi : id.lo;
    half = half << 4 | static_cast<std::uint64_t>(digit);
  }
  return id;
}

}  // namespace troupe
