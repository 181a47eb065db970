#include "runtime/net/address.h"

#include <algorithm>
#include <charconv>

namespace troupe::net {
namespace {

Status Malformed(std::string_view text, const std::string& why) {
  return MakeError(ErrorCode::kInvalid, "'" + std::string(text.substr(0, 120)) +
                                            "' is not an address: " + why +
                                            "\n  write host:port, [::1]:port or unix:/path");
}

// Characters of names and numeric addresses; any other would not be read back as it was.
bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_' || c == ':' || c == '%';
}

}  // namespace

std::string Address::Text() const {
  if (is_unix()) return "unix:" + path;
  const bool numeric_v6 = host.find(':') != std::string::npos;
  return (numeric_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

StatusOr<Address> UnixAddress(std::string path) {
  if (path.empty() || path[0] != '/')
    return Malformed(path, "the path of a Unix socket begins with /");
  if (path.find('\0') != std::string::npos) return Malformed(path, "a path has no zero byte");
  if (path.size() > kUnixPathBytesMax) {
    return Malformed(path, "the path of a Unix socket has at most 107 bytes, this one " +
                               std::to_string(path.size()) +
                               " (set XDG_RUNTIME_DIR or TMPDIR to a shorter one)");
  }
  Address address;
  address.path = std::move(path);
  return address;
}

StatusOr<Address> TcpAddress(std::string host, int port) {
  if (host.empty()) return Malformed(host, "the host is missing");
  if (port < 0 || port > 65535) return Malformed(host, "a port lies between 0 and 65535");
  Address address;
  address.host = std::move(host);
  address.port = static_cast<std::uint16_t>(port);
  return address;
}

StatusOr<Address> ParseAddress(std::string_view text) {
  if (text.substr(0, 5) == "unix:") return UnixAddress(std::string(text.substr(5)));
  if (!text.empty() && text[0] == '/') return UnixAddress(std::string(text));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Malformed(text, "the port is missing");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (!host.empty() && host.front() == '[') {
    if (host.back() != ']') return Malformed(text, "a bracket is not closed");
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) {
      return Malformed(text, "brackets are for IPv6 addresses");
    }
  } else if (host.find(':') != std::string_view::npos) {
    return Malformed(text, "an IPv6 address stands in brackets");
  }
  if (host.empty()) return Malformed(text, "the host is missing");
  if (!std::all_of(host.begin(), host.end(), IsHostCharacter)) {
    return Malformed(text, "the host has a character that no name and no address has");
  }
  if (host.size() > 255) return Malformed(text, "the host name is too long");
  int port = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port < 0 || port > 65535) {
    return Malformed(text, "a port lies between 0 and 65535");
  }
  return TcpAddress(std::string(host), port);
}

}  // namespace troupe::net
