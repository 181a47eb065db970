// How a worker passes a connection that asked for an actor on to the actor's process (decision 23).
//
// The process listens on a second Unix socket beside the one for calls of this host; the worker
// connects to it, sends the descriptor and leaves. So a process that is busy, or stopped, still has
// its callers queued by the kernel, up to the backlog, and the worker never waits. The socket's
// folder is 0700 and its mode 0600; both ends check that the other runs as the same user. Nothing
// of the connection has been read by then but a look at its first bytes: the process does the TLS
// handshake.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace troupe::net {

/// Returns the path where the process with the call socket `call_socket` takes connections over.
inline std::string HandoverPath(const std::string& call_socket) { return call_socket + ".tls"; }

/// The second call socket of an actor, whose calls run beside its methods: it gives tensors that
/// the actor keeps (docs/guides/tensors.md). The process makes it when it first has some.
inline std::string AsideSocket(const std::string& call_socket) { return call_socket + ".a"; }
/// By which TLS server name callers of other hosts ask for that socket of a process.
inline std::string AsideName(const std::string& process) { return process + ".a"; }
/// The name of a process, if that asks for its second socket.
inline std::optional<std::string_view> ProcessAskedAside(std::string_view server_name) {
  if (!server_name.ends_with(".a")) return std::nullopt;
  return server_name.substr(0, server_name.size() - 2);
}

/// The process: a non-blocking listening socket at `path`, of 107 bytes at most. A socket left
/// there by a process that is gone is replaced. The file is the caller's to remove.
StatusOr<UniqueFd> ListenForHandovers(const std::string& path);
/// The worker: passes `connection` on, which stays the caller's. kConnection when nobody listens
/// there or too many are waiting. Never blocks.
Status HandOver(const std::string& path, int connection);
/// The process: the next one who wants to hand something over, or an invalid descriptor when there
/// is none; to be read by TakeHandover when it is readable.
StatusOr<UniqueFd> AcceptHandover(int listener);
/// The connection that comes over `giver`; kInvalid when what came is none. Never blocks.
StatusOr<UniqueFd> TakeHandover(int giver);

}  // namespace troupe::net
