// Contents of this project's certificates, and the conclusions from them.
//
// A leaf's SAN is `troupe://<cluster id>/<role>/<id>`, and `/<token id>` after it where a token was
// shown for it; the cluster id is the first 16 bytes of the
// SHA-256 of the CA's public key. Certificates are values (PEM text inside); the functions are
//         pure.
// Wall times are microseconds since 1970.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/ids.h"
#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

struct x509_st;

namespace troupe::net {

/// The identity that a certificate was issued to.
struct Identity {
  ClusterId cluster;
  wire::Role role = wire::Role::kNone;
  Id128 id;
  // Token that let it in, so that it ends with that (revocations.h); nil: none did. Not a part of
  // its identity
  TokenId token;
  friend bool operator==(const Identity& a, const Identity& b) {
    return a.cluster == b.cluster && a.role == b.role && a.id == b.id;
  }
};
/// "troupe://<cluster>/<role>/<id>", or "troupe://<cluster>/<role>/<id>/<token>".
std::string FormatIdentity(const Identity& identity);
/// kInvalid for any other text.
StatusOr<Identity> ParseIdentity(std::string_view uri);

struct Validity {
  std::uint64_t not_before_us = 0;
  std::uint64_t not_after_us = 0;
};
/// Issued this long before the moment of issue, so that a clock that lags a little does no harm.
inline constexpr std::uint64_t kBackdateUs = 3600ull * 1'000'000;
/// Nodes and the head: 7 days; clients, observers, processes of a launch: 24 h.
std::uint64_t LifetimeUs(wire::Role role);
/// Two thirds of the life, counted from the issue, are over; or it has not begun: the clock was set
/// back since.
bool RenewalDue(const Validity& validity, std::uint64_t now_us);
/// nullopt when `now_us` lies within. Otherwise a clause for an error, which names the clock skew
/// when a clock must be wrong: "is valid only from ...; this machine's clock reads ..., ...".
std::optional<std::string> ValidityProblem(const Validity& validity, std::uint64_t now_us);
/// A sentence when a certificate just issued shows that the two clocks differ by over a minute:
/// its issuer stamped it kBackdateUs before its own now. nullopt when they agree.
std::optional<std::string> SkewOfFreshCertificate(const Validity& validity, std::uint64_t now_us);

/// A cluster id from the SHA-256 of a CA's public key (32 bytes).
ClusterId ClusterIdOf(std::string_view ca_key_hash);

class Certificate {
 public:
  /// The first certificate of a PEM text; kInvalid when there is none.
  static StatusOr<Certificate> FromPem(std::string_view pem);
  /// Takes a share of `x509`.
  static Certificate Share(x509_st* x509);

  std::string Pem() const;
  /// From the SAN; kInvalid when it has none of ours (a CA, a foreign certificate).
  StatusOr<Identity> identity() const;
  Validity validity() const;
  /// SHA-256 of its public key: 32 bytes.
  std::string KeyHash() const;

  /// Borrowed; valid while this Certificate lives.
  x509_st* get() const { return x509_.get(); }

 private:
  explicit Certificate(std::shared_ptr<x509_st> x509) : x509_(std::move(x509)) {}
  std::shared_ptr<x509_st> x509_;
};

}  // namespace troupe::net
