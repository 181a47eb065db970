// Credentials and addresses that a process needs to call, or be called, across hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/client/process_identity.h"

namespace troupe::actors {

/// Gives the certificate and contexts to use now; may block (ProcessIdentity::Get). Called on the
/// TlsLoop's thread.
using IdentitySource = std::function<StatusOr<std::shared_ptr<const client::IdentityShown>>()>;

/// The address of an actor for other hosts.
struct RemoteActor {
  std::string host;  // address of its worker
  std::uint16_t port = 0;
  std::string process;   // the TLS server name: the worker passes the connection on by it
  ActorId actor;  // actor that its certificate must name
  bool objects = false;  // not for calls: for the large values that they name (bulk_mover.h)
};

}  // namespace troupe::actors
