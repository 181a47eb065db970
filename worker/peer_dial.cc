#include "worker/peer_dial.h"

#include <unistd.h>

#include <utility>

namespace troupe::worker {

bool IsLocal(const PeerSelf& self, const PeerPlace& place) {
  return !self.force_tcp && !place.unix_path.empty() && place.boot_id == self.boot_id;
}

net::OpenOptions DialOptions(const PeerSelf& self, const PeerPlace& place,
                             net::Credentials credentials) {
  net::Address address;
  if (IsLocal(self, place)) {
    address.path = place.unix_path;
  } else {
    address.host = place.host;
    address.port = place.port;
  }
  net::OpenOptions options(std::move(address));
  options.credentials = std::move(credentials);
  options.expected.role = wire::Role::kWorker;
  options.hello.role = wire::Role::kWorker;
  options.hello.name = self.name;
  options.hello.boot_id = self.boot_id;
  options.hello.pid = getpid();
  return options;
}

}  // namespace troupe::worker
