// The variables of launches and actors in the journal: encrypted, names and values.
//
// They may be credentials, and a journal is copied, kept by repairs, and sent to who looks for a
// fault in it. The key is not in it: it is derived from the cluster's own (ca.key). One entry that
// is `sealed` stands for all variables of an environment.
//
// Pure but for the nonce; thread-safe.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/net/sealer.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

class EnvironmentSeal {
 public:
  /// `key`: 32 bytes, of this cluster for this purpose.
  explicit EnvironmentSeal(Secret key) : sealer_(std::move(key)) {}

  /// Returns true if an event has variables.
  static bool Concerns(const wire::EventBody& body);
  Status Seal(wire::EventBody& body) const;
  /// Leaves alone what an earlier version wrote as it was. kInvalid: sealed with another cluster's
  /// key.
  Status Unseal(wire::EventBody& body) const;

 private:
  net::Sealer sealer_;
};

}  // namespace troupe::head
