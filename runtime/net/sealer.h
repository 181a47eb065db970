// Bytes that are kept encrypted: AES-256-GCM under a key that is derived from another one.
//
// Thread-safe; immutable. A sealed text is a nonce of 12 random bytes, the ciphertext and a tag of
// 16 bytes; under one key at most 2^32 may be made (NIST SP 800-38D, 8.3), which a head's journal
// does not come near.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/secret.h"
#include "runtime/base/status.h"

namespace troupe::net {

class Sealer {
 public:
  /// `key`: 32 bytes.
  explicit Sealer(Secret key) : key_(std::move(key)) {}

  /// kInternal where the system has no randomness.
  StatusOr<std::string> Seal(std::string_view plain) const;
  /// kInvalid for what was not sealed under this key, or was changed since.
  StatusOr<std::string> Open(std::string_view sealed) const;

 private:
  Secret key_;
};

}  // namespace troupe::net
