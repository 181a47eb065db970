// Reads the server name out of the first bytes of a TLS connection, without answering them.
//
// A worker has one port (decision 23): a connection whose server name is an actor's id is passed,
// raw and unread, to that actor's process. Pure parser (fuzzed) and a peek at a socket; nothing is
// consumed. Hostile input gives kNotTls, never an error or an overread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace troupe::net {

/// More than any sensible ClientHello; a longer one is treated as not TLS.
inline constexpr std::size_t kClientHelloBytesMax = 16 * 1024;

struct ServerNamePeek {
  enum class State {
    kIncomplete,  // more bytes are needed
    kNotTls,      // these bytes are no ClientHello
    kNone,        // a ClientHello without a server name
    kName,        // a ClientHello with `name`
  };
  State state = State::kIncomplete;
  std::string name;
};

/// Parses the first bytes of a connection.
ServerNamePeek ParseClientHello(std::string_view bytes);

/// Parses the bytes that wait in `socket` now (MSG_PEEK; never blocks). kConnection when the peer
/// is gone. `available` receives the number of bytes looked at.
StatusOr<ServerNamePeek> PeekServerName(int socket, std::size_t* available = nullptr);

}  // namespace troupe::net
