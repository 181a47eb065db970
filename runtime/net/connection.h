// A Connection carries control messages between two processes: framed, bounded, over TLS or a Unix
// socket.
//
// View: one process; owned by one loop, all calls on it; held by shared_ptr. Messages arrive in the
// order sent. Send() queues and returns; a peer that lets 64 MiB pile up is disconnected. Receive()
// suspends; one caller at a time. EOF on a frame boundary is clean_eof(); within a frame the error
// names the peer and the bytes. After an error, or Close(), every call gives that error
// (kConnection, or kInvalid/kTooLarge for what the peer sent). Until Authenticated(), only frames
// of at most 4 KiB are taken in, a header within 2 s and a whole frame within 5 s.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/stream.h"
#include "runtime/net/tls_context.h"
#include "runtime/wire/messages.h"

namespace troupe::net {

inline constexpr std::size_t kQueueBytesMax = 64u << 20;
/// Drain() returns when less than this waits.
inline constexpr std::size_t kDrainedBytes = 4u << 20;

/// Facts known about the other side before its first message.
struct PeerInfo {
  std::string address;  // how errors call it: "10.0.0.7:40112", "pid 4711", "rank 3 of 7f3a"
  std::string host;  // IP address as text; empty for a Unix socket
  bool local = false;   // a Unix socket; then:
  uid_t uid = 0;
  pid_t pid = 0;
  PeerVerdict certificate;  // TLS: what its certificate came to
  std::string exporter;     // TLS: binds a token's proof to this session; empty otherwise
};

class Connection {
 public:
  virtual ~Connection() = default;

  /// The next message. Cancelling it loses nothing: what was half received stays for the next call.
  virtual async::Task<StatusOr<wire::Message>> Receive() = 0;
  /// Queues `message`. Errors: the connection's own, kTooLarge (over a wire limit; the connection
  /// stays), kConnection (64 MiB wait: it is closed).
  virtual Status Send(const wire::Message& message) = 0;
  /// Suspends until less than kDrainedBytes wait: for senders of much data.
  virtual async::Task<Status> Drain() = 0;
  /// Sends what is queued, at most for `limit`, then closes.
  virtual async::Task<void> Finish(Duration limit) = 0;
  /// Closes now; pending and later calls end with `reason`.
  virtual void Close(Status reason) = 0;

  virtual const PeerInfo& peer() const = 0;
  /// The peer has proven itself: full limits apply, and it no longer counts as unauthenticated.
  virtual void Authenticated() = 0;
  /// The peer ended the stream between two messages.
  virtual bool clean_eof() const = 0;
  virtual std::size_t queued_bytes() const = 0;
  /// The socket, borrowed, for whoever must close it in a forked child; -1 once closed.
  virtual int native_fd() const = 0;
};

/// `ticket` is dropped at Authenticated() or with the connection (the listener's count).
/// `authenticated`: full limits from the start.
std::shared_ptr<Connection> MakeConnection(const async::Executor& executor,
                                           std::unique_ptr<Stream> stream, PeerInfo peer,
                                           bool authenticated,
                                           std::shared_ptr<void> ticket = nullptr);

/// The connection over an inherited Unix stream socket (process <-> worker): trusted as it is.
/// `peer` is how errors call the other side.
StatusOr<std::shared_ptr<Connection>> AdoptUnixSocket(const async::Executor& executor, UniqueFd fd,
                                                      std::string peer);

}  // namespace troupe::net
