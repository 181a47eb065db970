// Hashes, keyed hashes and text forms of bytes that certificates and tokens are made of.
//
// Pure functions; thread-safe. SHA-256 throughout. Base32 is RFC 4648's alphabet in lower case
// without padding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/secret.h"

namespace troupe::net {

std::string Sha256(std::string_view bytes);
std::string HmacSha256(std::string_view key, std::string_view bytes);
/// RFC 5869, 32 bytes out.
Secret HkdfSha256(std::string_view secret, std::string_view salt, std::string_view info);
/// Takes the same time whatever differs.
bool ConstantTimeEqual(std::string_view a, std::string_view b);

std::string Base32(std::string_view bytes);
/// nullopt for a character outside the alphabet or a length no byte string has.
std::optional<std::string> FromBase32(std::string_view text);

std::uint32_t Crc32c(std::string_view bytes);

}  // namespace troupe::net
