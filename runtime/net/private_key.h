// An Ed25519 key pair of a cluster CA, a node, a client or a launch.
//
// Ed25519 throughout: one kind to check, deterministic signatures, and a key can be derived from 32
// secret bytes (`troupe run --secret-file`). Copyable (shares the key); immutable; thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/secret.h"
#include "runtime/base/status.h"

struct evp_pkey_st;

namespace troupe::net {

class PrivateKey {
 public:
  static PrivateKey Generate();
  /// The key whose private part is `seed`, 32 bytes; kInvalid for another length.
  static StatusOr<PrivateKey> FromSeed(std::string_view seed);
  /// PKCS#8 PEM without a pass phrase. kInvalid when it is not an Ed25519 key.
  static StatusOr<PrivateKey> FromPem(const Secret& pem);
  Secret Pem() const;

  /// SHA-256 of the public part (SubjectPublicKeyInfo, DER): 32 bytes.
  std::string PublicHash() const;
  /// A certificate signing request in DER that proves possession of this key.
  StatusOr<std::string> SigningRequest() const;

  /// Borrowed; valid while this key lives.
  evp_pkey_st* get() const { return key_.get(); }

 private:
  explicit PrivateKey(std::shared_ptr<evp_pkey_st> key) : key_(std::move(key)) {}
  std::shared_ptr<evp_pkey_st> key_;
};

}  // namespace troupe::net
