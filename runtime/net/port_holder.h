// The listener on a TCP port of this machine, for the error "port 6400 is taken by ...".
//
// Blocking: reads /proc, some milliseconds on a busy machine; only for an error about to be shown.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::net {

/// "process 4711 (troupe-head)", or "another process" when /proc does not tell (another user's).
std::string HolderOfPort(std::uint16_t port);

}  // namespace troupe::net
