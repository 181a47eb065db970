// Binds and listens, with errors that say who is in the way and what to do.
//
// Blocking for microseconds (a port that is taken: milliseconds, /proc is read). The descriptors
// are close-on-exec and non-blocking.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/address.h"

namespace troupe::net {

struct Bound {
  UniqueFd fd;
  Address address;  // with the port that was taken
};

/// A numeric or resolvable host of this machine; the first of its addresses that can be bound.
StatusOr<Bound> BindTcp(const Address& address);
/// In a folder of mode 0700 that is this user's own (made if missing); the socket's mode is 0600.
StatusOr<Bound> BindUnix(const Address& address);

}  // namespace troupe::net
