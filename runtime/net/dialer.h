// Dials a peer: a Unix socket, or TCP with TLS.
//
// View: one process; runs on the loop it is awaited on, to which the connection then belongs. All
// of it (name, connect, handshake) ends by `limit`. Errors for a person: kConnection (nobody
// listens, the name does not resolve), kTimeout (how long was waited for what), kWrongCluster and
// kJoinRefused (the peer's certificate; nothing was sent to it but a ClientHello). The connection
// still has to prove itself: see session.h.
#pragma once

#include <memory>

#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/net/address.h"
#include "runtime/net/connection.h"
#include "runtime/net/tls_context.h"

namespace troupe::net {

struct DialOptions {
  explicit DialOptions(Address to) : address(std::move(to)) {}
  Address address;
  std::shared_ptr<const TlsContext> tls;  // required for TCP
  ExpectedPeer expected;
  Duration limit = std::chrono::seconds(5);
};

/// A connection to options.address. A server that closes at once, because too many strangers knock
/// at its door, is asked again until the limit.
async::Task<StatusOr<std::shared_ptr<Connection>>> Dial(DialOptions options);

}  // namespace troupe::net
