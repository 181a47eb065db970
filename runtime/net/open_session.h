// Dial and join in one step: what a worker, a driver and the CLI do to reach the head.
//
// View: one process; runs on the loop it is awaited on. Chooses the proof: a certificate if there
// is one, else the token, else (on a Unix socket) being the same user. Errors are Dial's and
// Join's; all of it ends by `limit`.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/net/address.h"
#include "runtime/net/connection.h"
#include "runtime/net/credentials.h"
#include "runtime/net/session.h"
#include "runtime/net/token.h"

namespace troupe::net {

struct OpenOptions {
  explicit OpenOptions(Address to) : address(std::move(to)) {}
  Address address;
  std::optional<Credentials> credentials;
  std::optional<Token> token;  // used when there are no credentials
  ExpectedPeer expected;       // by default: the head
  wire::Hello hello;           // see JoinOptions
  std::optional<PrivateKey> key;
  Duration limit = std::chrono::seconds(5);
};

struct OpenedSession {
  std::shared_ptr<Connection> connection;
  Joined joined;
};

/// `clock` must outlive the connection (certificates are held against it).
async::Task<StatusOr<OpenedSession>> OpenSession(OpenOptions options, const Clock& clock);

}  // namespace troupe::net
