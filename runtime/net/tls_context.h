// The part of TLS that connections share: own certificate, whom to trust, how strictly.
//
// View: one process. One context per certificate generation (building one is slow); a renewed
// certificate makes a new context, and connections of the old one keep it until they end. Immutable
// and thread-safe once made. TLS 1.3 only, no session tickets, no early data.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/net/certificate.h"
#include "runtime/net/credentials.h"

struct ssl_ctx_st;

namespace troupe::net {

/// The result of the check of a peer's certificate.
struct PeerVerdict {
  /// Present only when the certificate is of the trusted CA and its key was proven.
  std::optional<Identity> identity;
  std::string key_hash;  // SHA-256 of the peer's public key; empty without a certificate
  /// The certificate's time is over (or has not come): `identity` is then set nevertheless on a
  /// server, and whoever lets the peer in must decide (decision 18: a known node may rejoin).
  bool out_of_date = false;
  std::string ca_pem;  // the trusted CA as the peer presented it; only when it was pinned
  /// Why there is no identity, or why it is out of date; ok when neither.
  Status problem;
};

class TlsContext {
 public:
  enum class Clients {
    // join by token is possible; a bad certificate counts as none, with its problem kept
    kOptional,
    kRequired,  // without a valid certificate the handshake fails
  };

  /// `clock` gives the time certificates are held against; it must outlive the context. With
  /// `http`, a certificate for the same key, clients that offer kHttpProtocol by ALPN get that
  /// protocol, and are shown that certificate.
  static StatusOr<std::shared_ptr<const TlsContext>> ForServer(
      const Credentials& credentials, Clients clients, const Clock& clock,
      std::optional<Certificate> http = std::nullopt);
  /// A client that trusts whoever the CA with this key hash (32 bytes, from a token) vouches for.
  static StatusOr<std::shared_ptr<const TlsContext>> ForPinnedClient(const std::string& ca_key_hash,
                                                                     const Clock& clock);
  /// A client with a certificate of its own.
  static StatusOr<std::shared_ptr<const TlsContext>> ForClient(const Credentials& credentials,
                                                               const Clock& clock);
  /// A client that has only the cluster's CA certificate (PEM text).
  static StatusOr<std::shared_ptr<const TlsContext>> ForAnonymousClient(const std::string& ca_pem,
                                                                        const Clock& clock);

  bool is_server() const { return server_; }
  /// The certificate for HTTP clients, if HTTP is served.
  const std::optional<Certificate>& http() const { return http_; }
  /// Cluster this context trusts.
  ClusterId cluster() const { return ClusterIdOf(ca_key_hash_); }
  ssl_ctx_st* get() const { return context_.get(); }

  /// The verdict on a peer that presented `chain` (leaf first); a server's peer may present none.
  /// `peer` is how errors call it.
  PeerVerdict Judge(x509_st* leaf, const std::vector<x509_st*>& chain,
                    const std::string& peer) const;

 private:
  TlsContext(bool server, Clients clients, std::string ca_key_hash, const Clock& clock);
  static StatusOr<std::shared_ptr<TlsContext>> Make(bool server, Clients clients,
                                                    std::string ca_key_hash, const Clock& clock);
  Status Use(const Credentials& credentials);

  std::shared_ptr<ssl_ctx_st> context_;
  const bool server_;
  const Clients clients_;
  const std::string ca_key_hash_;
  const Clock& clock_;
  std::optional<Certificate> http_;

  friend class TlsEngine;
};

}  // namespace troupe::net
