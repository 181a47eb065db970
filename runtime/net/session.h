// The handshake on top of a connection: Hello, then Welcome or Refused. After it both sides know
// who the other is, and nothing before it was decoded but that one small frame.
//
// Three proofs: the same user on a Unix socket; a certificate of the cluster (role and id from its
// SAN); a token, whose secret is proven by an HMAC over the TLS exporter and answered with a
// certificate for the key in the Hello. Decide() is pure; Authenticate() and Join() are its shells:
// they run on the connection's loop and suspend. Refusals are texts for a person and say what to
// do; their codes: kJoinRefused, kWrongCluster, kVersionMismatch, kInvalid.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/async/task.h"
#include "runtime/base/ids.h"
#include "runtime/base/random.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/net/authority.h"
#include "runtime/net/connection.h"
#include "runtime/net/credentials.h"
#include "runtime/net/token.h"
#include "runtime/wire/messages.h"

namespace troupe::net {

/// From a connection handed over by the listener to its Hello.
inline constexpr std::chrono::seconds kHelloLimit{5};

enum class Proof { kSameUser, kCertificate, kToken };

/// The rules by which a server admits peers. Objects that the functions refer to must outlive the
/// rules.
struct SessionRules {
  ClusterId cluster;
  std::uint64_t head_incarnation = 0;
  std::string name;    // the server's host, for people
  std::string ca_pem;  // goes along with every certificate
  /// Signs certificate requests; null on a worker, which signs none.
  const Authority* authority = nullptr;
  /// Executor that signs certificates, so that a storm of joins does not hold up the caller's loop.
  /// Unset: on that loop.
  std::optional<async::Executor> signing;
  /// The record of a token, or nullopt. Unset: tokens are not accepted here.
  std::function<std::optional<TokenRecord>(const TokenId&)> find_token;
  /// Called once a token has admitted a peer, before the Welcome leaves (single use).
  std::function<void(const TokenId&)> on_token_used;
  /// Returns true if a certificate that is out of date may still be used: the roster knows this id
  /// with this key (decision 18). Unset: never.
  std::function<bool(const Identity&, const std::string& key_hash)> may_rejoin;
  /// False: this user's other processes on this host are no clients by that alone.
  bool local_clients = true;
  /// Returns true if a certificate is worth nothing any more, since its token was revoked
  /// (revocations.h). Unset: none is.
  std::function<bool(const Identity&)> revoked;
};

/// An admitted peer.
struct Admitted {
  wire::Hello hello;
  wire::Role role = wire::Role::kNone;
  Id128 subject;  // the node's or client's id: from its certificate, or new
  Proof proof = Proof::kSameUser;
  TokenId token;  // token that was shown, now or for the certificate; nil: none
  SessionId session;
  std::string issued_key_hash;  // SHA-256 of the key a certificate was issued for; empty: none was
  std::uint16_t version = 0;    // the protocol's, for this session
};

/// Decides whether the sender of `hello` is let in, and as whom. Pure but for the new ids it draws.
StatusOr<Admitted> Decide(const wire::Hello& hello, const PeerInfo& peer, const SessionRules& rules,
                          std::uint64_t now_us, Random& random);

/// Receives the Hello, decides, answers. On an error the peer was told and the connection is
/// closed. `rules`, `clock` and `random` must outlive the call.
async::Task<StatusOr<Admitted>> Authenticate(std::shared_ptr<Connection> connection,
                                             const SessionRules& rules, const Clock& clock,
                                             Random& random);

struct JoinOptions {
  /// Role, name, host, boot id, pid, Python version; cluster and subject where known. The rest is
  /// filled in.
  wire::Hello hello;
  std::optional<Token> token;
  /// Given: a certificate for it is asked for.
  std::optional<PrivateKey> key;
  Duration limit = std::chrono::seconds(5);
};

struct Joined {
  wire::Welcome welcome;
  std::optional<Credentials> credentials;  // when a key was given
  std::string clock_warning;               // a sentence when the two clocks differ, or empty
};

/// The client's side. On an error the connection is closed; the text begins with the peer's
/// address.
async::Task<StatusOr<Joined>> Join(std::shared_ptr<Connection> connection, JoinOptions options,
                                   const Clock& clock);

}  // namespace troupe::net
