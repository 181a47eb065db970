// Texts within a size.
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe {

/// The beginning of a UTF-8 text, at most so many bytes of it, and no part of a character.
inline std::string_view CutText(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

}  // namespace troupe
