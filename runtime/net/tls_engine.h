// A TLS 1.3 session as a pure transformation: ciphertext in, plaintext out, and back; no socket.
//
// View: one connection; owned by its loop, not thread-safe (but it may move to another thread
// between calls). Nothing blocks. The peer's certificate is judged inside the handshake, before
// this side has sent anything but its ClientHello: a client whose pin does not match never sends a
// byte of application data, nor its own certificate.
//   engine.Start();                      // a client: its first flight
//   send(engine.TakeOutgoing());  engine.Feed(received);  ... until engine.established()
//   engine.Write(plain); send(engine.TakeOutgoing());   n = *engine.Read(buffer, size);
// After an error, TakeOutgoing() still holds the alert that tells the peer.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/ids.h"
#include "runtime/base/status.h"
#include "runtime/net/tls_context.h"

struct ssl_st;
struct x509_store_ctx_st;

namespace troupe::net {

/// The peer a client wants to reach, beyond "somebody of the trusted cluster".
struct ExpectedPeer {
  wire::Role role = wire::Role::kNone;  // none: any role
  Id128 id;                             // nil: any id
  std::string server_name;  // SNI in the clear: the actor's id, or nothing
  bool objects = false;                 // the connection is for kObjectsProtocol
};

/// ALPN protocol of a client's connection that is not for messages or calls.
inline constexpr std::string_view kObjectsProtocol = "troupe-objects";
/// The ALPN protocol of HTTP requests (RFC 7301). Servers choose it only where they serve HTTP.
inline constexpr std::string_view kHttpProtocol = "http/1.1";

class TlsEngine {
 public:
  /// `peer` is how errors call the other side, e.g. "10.0.0.1:6400".
  static StatusOr<std::unique_ptr<TlsEngine>> Client(std::shared_ptr<const TlsContext> context,
                                                     ExpectedPeer expected, std::string peer);
  static StatusOr<std::unique_ptr<TlsEngine>> Server(std::shared_ptr<const TlsContext> context,
                                                     std::string peer);
  ~TlsEngine();
  TlsEngine(const TlsEngine&) = delete;
  TlsEngine& operator=(const TlsEngine&) = delete;

  /// Begins the handshake (a client's first flight; a server waits for the peer's).
  Status Start();
  /// Takes ciphertext and moves the handshake on. Errors end the session: kInvalid (not TLS, or
  /// tampered with), kWrongCluster, kJoinRefused (certificates).
  Status Feed(std::string_view ciphertext);
  bool established() const { return established_; }

  /// Plaintext that is there now, at most `size` bytes; 0 when there is none (see closed()).
  StatusOr<std::size_t> Read(char* into, std::size_t size);
  /// The peer said that it sends no more: an EOF after this is clean, one without it is a cut.
  bool closed() const { return closed_; }
  /// Turns `plain` into ciphertext for TakeOutgoing(). Slice large data: it is buffered whole.
  Status Write(std::string_view plain);
  /// Tells the peer that nothing more comes.
  void Shutdown();

  bool HasOutgoing() const;
  /// Takes out all ciphertext that is for the peer.
  std::string TakeOutgoing();
  /// Moves ciphertext that is for the peer into a buffer, for a path that must not allocate;
  /// returns how much of it was filled.
  std::size_t TakeOutgoing(char* into, std::size_t size);

  /// Valid once established.
  const PeerVerdict& verdict() const { return verdict_; }
  /// 32 bytes that only the two ends of this session know (RFC 8446 §7.5), for `label`.
  StatusOr<std::string> Exporter(std::string_view label) const;
  /// Returns the client's SNI; empty if there is none.
  std::string server_name() const;
  /// The protocol that ALPN selected; empty if none. Valid once established.
  std::string_view protocol() const;
  /// Returns true if the client asked for kObjectsProtocol. Valid once established.
  bool for_objects() const { return protocol() == kObjectsProtocol; }

  /// OpenSSL's callback (`argument` is the TlsContext): judges the peer's chain.
  static int VerifyPeer(x509_store_ctx_st* store, void* argument);

 private:
  TlsEngine(std::shared_ptr<const TlsContext> context, ExpectedPeer expected, std::string peer);
  static StatusOr<std::unique_ptr<TlsEngine>> Make(std::shared_ptr<const TlsContext> context,
                                                   ExpectedPeer expected, std::string peer);
  Status Handshake();
  Status Fail(const char* doing);
  bool Accept(PeerVerdict verdict);

  std::shared_ptr<const TlsContext> context_;
  ExpectedPeer expected_;
  std::string peer_;
  std::shared_ptr<ssl_st> ssl_;
  PeerVerdict verdict_;
  bool established_ = false;
  bool closed_ = false;
};

}  // namespace troupe::net
