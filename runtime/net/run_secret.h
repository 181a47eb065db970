// Values that the nodes of one `troupe run` derive from the secret they share, before any head
// exists: the key of the cluster's authority (whose hash every node pins), two join tokens, and a
// port.
//
// HKDF-SHA-256 of the secret, with the run's name (a scheduler's job id, or empty) in its input:
// two jobs that share a secret are two clusters. Pure; the same on every node. A value; the secret
// is not kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/secret.h"
#include "runtime/base/status.h"
#include "runtime/net/token.h"

namespace troupe::net {

inline constexpr std::size_t kRunSecretBytes = 32;
/// Below the range from which systems take ports for outgoing connections.
inline constexpr std::uint16_t kRunPortFirst = 20000;
inline constexpr std::uint16_t kRunPortCount = 12000;

struct RunSecret {
  Secret authority_seed;
  Token worker;
  Token client;
  std::uint16_t port = 0;
};

/// kInvalid when `secret` has not exactly 32 bytes.
StatusOr<RunSecret> DeriveRun(const Secret& secret, std::string_view run);

}  // namespace troupe::net
