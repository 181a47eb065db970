// The address of a listener: "host:port", "[::1]:port", "unix:/path", or a bare path.
//
// A value; pure. Errors (kInvalid) say what an address looks like.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace troupe::net {

/// sockaddr_un's limit, without the terminating zero.
inline constexpr std::size_t kUnixPathBytesMax = 107;

struct Address {
  std::string host;  // name or number, without brackets; empty for a Unix socket
  std::uint16_t port = 0;
  std::string path;  // a Unix socket's; empty for TCP

  bool is_unix() const { return !path.empty(); }
  /// The text form that ParseAddress takes.
  std::string Text() const;
  friend bool operator==(const Address& a, const Address& b) {
    return a.host == b.host && a.port == b.port && a.path == b.path;
  }
};

StatusOr<Address> ParseAddress(std::string_view text);
StatusOr<Address> TcpAddress(std::string host, int port);
StatusOr<Address> UnixAddress(std::string path);

}  // namespace troupe::net
