// The cluster's certificate authority: made at the head's first start, kept in the head's folder.
//
// View: the cluster; only the head owns one. Its key is `ca.key` (0600, made with O_EXCL), its
// certificate `ca.crt`. Issue() decides what a certificate says; of the request only the key
// counts. Copyable value; Create and Issue cost about 0.1 ms of CPU; LoadOrCreate and Store block
// on disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/secret.h"
#include "runtime/base/status.h"
#include "runtime/net/certificate.h"
#include "runtime/net/private_key.h"

namespace troupe::net {

class Authority {
 public:
  static StatusOr<Authority> Create(std::uint64_t now_us);
  /// The authority whose key is derived from 32 secret bytes: the same on every node that has them.
  static StatusOr<Authority> FromSeed(std::string_view seed, std::uint64_t now_us);
  /// Reads `folder`/ca.key and ca.crt, or makes them. A missing certificate beside a key (a crash
  /// between the two) is made again: the key is the identity.
  static StatusOr<Authority> LoadOrCreate(const std::string& folder, std::uint64_t now_us);

  ClusterId cluster_id() const { return ClusterIdOf(key_hash_); }
  /// SHA-256 of the public key: what a join token pins.
  const std::string& key_hash() const { return key_hash_; }
  const Certificate& certificate() const { return certificate_; }
  /// 32 bytes that only who has this key can make, others for each purpose.
  Secret Derived(std::string_view purpose) const;

  /// How long the certificates of nodes and of the head live; by default LifetimeUs(role).
  void set_node_lifetime_us(std::uint64_t lifetime_us) { node_lifetime_us_ = lifetime_us; }
  std::uint64_t LifetimeOfUs(wire::Role role) const;

  /// A certificate for the key of `signing_request` (DER), in PEM. kInvalid when the request is
  /// malformed, is not signed by its own key, or its key is not Ed25519. `token` let that one in;
  /// nil: none did.
  StatusOr<std::string> Issue(std::string_view signing_request, wire::Role role, const Id128& id,
                              std::uint64_t now_us, const TokenId& token = TokenId()) const;
  /// Makes a certificate for a key at hand (the head's own), with a chosen life, in PEM.
  StatusOr<std::string> IssueFor(const PrivateKey& subject, wire::Role role, const Id128& id,
                                 std::uint64_t now_us, std::uint64_t lifetime_us) const;
  /// Makes a certificate for HTTP clients, which know a server by its name, in PEM. It names no
  /// Identity, so it is worth nothing in the runtime's own protocol. `names` are host names and
  /// numeric addresses; whatever is neither is left out.
  StatusOr<std::string> IssueForHttp(const PrivateKey& subject,
                                     const std::vector<std::string>& names, std::uint64_t now_us,
                                     std::uint64_t lifetime_us) const;

 private:
  Authority(PrivateKey key, Certificate certificate);
  static StatusOr<Authority> Of(PrivateKey key, std::uint64_t now_us);
  StatusOr<std::string> IssueTo(evp_pkey_st* subject, const Identity& identity,
                                std::uint64_t now_us, std::uint64_t lifetime_us) const;
  /// `names` and `usage` are in OpenSSL's form for subjectAltName and extendedKeyUsage.
  StatusOr<std::string> Sign(evp_pkey_st* subject, const std::string& common_name,
                             const std::string& names, const std::string& usage,
                             std::uint64_t now_us, std::uint64_t lifetime_us) const;

  PrivateKey key_;
  Certificate certificate_;
  std::string key_hash_;
  std::uint64_t node_lifetime_us_ = LifetimeUs(wire::Role::kWorker);
};

}  // namespace troupe::net
