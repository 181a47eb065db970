// A Listener accepts connections on a Unix socket (same uid only) or a TCP port (TLS always).
//
// View: one process; owned by one loop, all calls on it. Start() returns at once; each connection
// is handed over when its TLS handshake is done, still unauthenticated (see session.h). Handshakes
// run beside the accept loop, on `handshakes` when given (another thread's executor), so that
// neither a slow peer nor a storm of them stalls it. Of too many unauthenticated peers the silent
// make room, or the newest are closed at once (admission.h); at descriptor exhaustion a reserve
// descriptor is spent to accept and close. Destroying a Listener stops it; connections handed over
// live on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/async/task.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/address.h"
#include "runtime/net/connection.h"
#include "runtime/net/tls_context.h"

namespace troupe::net {

/// A connection past its TLS handshake whose client asked for HTTP; its peer has proven nothing but
/// what its certificate says. `ticket` is its place among the unauthenticated: drop it once the
/// peer is known.
struct HttpArrival {
  std::unique_ptr<Stream> stream;
  PeerInfo peer;
  std::shared_ptr<void> ticket;
};

struct ListenOptions {
  Address address;                        // TCP: port 0 takes any free one
  std::shared_ptr<const TlsContext> tls;  // required for TCP
  std::optional<async::Executor> handshakes;
  /// Called on the listener's loop before each handshake: the place to renew the certificate.
  std::function<void()> before_handshake;
  /// Given: a TLS connection with a server name is not answered but handed over raw, nothing read
  /// from it (decision 23: the worker passes it on to the actor with that id).
  std::function<void(std::string server_name, UniqueFd socket)> on_named;
  /// Receives the connections that ALPN selected kHttpProtocol for, on `http_executor`, which their
  /// streams belong to. Set both where `tls` serves HTTP.
  std::function<void(HttpArrival arrival)> on_http;
  std::optional<async::Executor> http_executor;
  /// From accept to the end of the TLS handshake.
  Duration handshake_limit = std::chrono::seconds(5);
  std::size_t unauthenticated_per_host_max = 16;
  std::size_t unauthenticated_max = 256;
};

class Listener {
 public:
  using OnConnection = std::function<void(std::shared_ptr<Connection>)>;

  /// Binds and listens. A Unix socket's folder is made 0700 if need be and must be the caller's
  /// own; a socket left over by a dead process is replaced. Errors: kAlreadyExists (the port or
  /// path is taken, by whom, and what to do), kInvalid.
  static StatusOr<std::unique_ptr<Listener>> Open(const async::Executor& executor,
                                                  ListenOptions options);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// The listening address, with the port that was taken.
  const Address& address() const;
  /// `on_connection` runs on the listener's executor.
  void Start(OnConnection on_connection);
  /// New connections use `tls` (a renewed certificate).
  void SetTls(std::shared_ptr<const TlsContext> tls);
  /// Accepts no more and ends handshakes under way. A Unix socket's file is removed.
  void Stop();

 private:
  class Impl;
  explicit Listener(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

/// The label of the TLS exporter that a token's proof is bound to (PeerInfo::exporter).
inline constexpr char kJoinExporterLabel[] = "EXPORTER-troupe-join";

}  // namespace troupe::net
