// A byte stream between two processes: what a Connection cuts into messages.
//
// View: one connection; one loop. At most one Read and one Write run at a time. Both suspend; both
// report loss as kConnection without naming the peer (the Connection does). Buffers given must stay
// until the call returns. Destroying a stream closes it.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <cstddef>
#include <memory>
#include <string_view>

#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/tls_engine.h"

namespace troupe::net {

/// A TCP or Unix stream socket; which one is a matter of the descriptor.
using Socket = async::asio::generic::stream_protocol::socket;

class Stream {
 public:
  virtual ~Stream() = default;
  /// Some bytes, at least one; 0 at the end of the stream.
  virtual async::Task<StatusOr<std::size_t>> Read(char* into, std::size_t size) = 0;
  /// All of `bytes`.
  virtual async::Task<Status> Write(std::string_view bytes) = 0;
  /// Ends pending calls with an error. Idempotent.
  virtual void Close() = 0;
  /// The socket, borrowed; -1 once closed.
  virtual int native_fd() = 0;
};

/// A plain socket: Unix sockets and inherited socketpairs only, never TCP (decision 16).
std::unique_ptr<Stream> MakePlainStream(Socket socket);
/// TLS over `socket`; the handshake is done.
std::unique_ptr<Stream> MakeTlsStream(Socket socket, std::unique_ptr<TlsEngine> engine);

/// Runs `engine`'s handshake over `socket`; both must outlive the call. On an error the peer has
/// been sent the alert. Give it a deadline.
async::Task<Status> TlsHandshake(Socket& socket, TlsEngine& engine);

/// Wraps a connected descriptor for the loop of `executor`; it becomes non-blocking.
StatusOr<Socket> WrapSocket(const async::Executor& executor, UniqueFd fd);
/// No delay, keepalive, TCP_USER_TIMEOUT: a silent peer is noticed within 5 s.
void SetTcpOptions(int fd);

}  // namespace troupe::net
