// How one worker dials another: where, and as who. Pure but for this process's number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/net/open_session.h"

namespace troupe::worker {

/// This worker, as it presents itself to another one.
struct PeerSelf {
  std::string name;
  std::string boot_id;
  bool force_tcp = false;
};

/// The address of another worker. The parts live as long as the values they were taken from.
struct PeerPlace {
  std::string_view unix_path;  // empty: none
  std::string_view boot_id;
  std::string_view host;
  std::uint16_t port;
};

/// Returns true if it is on this host and may be reached by its Unix socket.
bool IsLocal(const PeerSelf& self, const PeerPlace& place);
/// By Unix socket on this host, else by TCP; only a worker of this cluster may answer.
net::OpenOptions DialOptions(const PeerSelf& self, const PeerPlace& place,
                             net::Credentials credentials);

}  // namespace troupe::worker
