// Support of the generated inspect.h.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/base/random.h"

namespace troupe::wire {

/// Up to 12 bytes, any value.
inline void FillText(std::string& out, Prng& random) {
  out.resize(random.Below(13));
  for (char& c : out) c = static_cast<char>(random.Next());
}
template <class T, class FillItem>
void FillList(std::vector<T>& out, Prng& random, FillItem fill_item) {
  const std::size_t count = random.Below(4);
  out.clear();
  for (std::size_t i = 0; i < count; ++i) {
    T item{};
    fill_item(item, random);
    out.push_back(std::move(item));
  }
}
/// Printable text with \xNN for the rest.
inline std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      out += c;
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      out += escaped;
    }
  }
  return out + "\"";
}

}  // namespace troupe::wire
