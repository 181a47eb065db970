// The identity of this process for other hosts: a key made here, and the head's certificate for it.
//
// View: one process. Thread-safe. Nothing is made until the first Get, which asks the head over the
// process's control channel (kCertifyLimit at most) while other threads wait for the same answer;
// the key never leaves this object's memory. At two thirds of its life the next Get renews it; as
// long as that fails the old one serves until it ends, and kRenewPause passes before the next
// attempt. After a fork the child has no use of it: its control channel is inert.
#pragma once

#include <memory>
#include <optional>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/client/control_client.h"
#include "runtime/net/credentials.h"
#include "runtime/net/tls_context.h"

namespace troupe::client {

inline constexpr std::chrono::seconds kCertifyLimit{10};
inline constexpr std::chrono::seconds kRenewPause{60};

/// A generation of the identity; connections established under it outlive it.
struct IdentityShown {
  net::Credentials credentials;
  // admits only peers with a certificate of the cluster
  std::shared_ptr<const net::TlsContext> server;
  std::shared_ptr<const net::TlsContext> client;
};

class ProcessIdentity {
 public:
  /// `credentials`: what joining brought already, if anything.
  explicit ProcessIdentity(std::shared_ptr<ControlClient> control,
                           std::optional<net::Credentials> credentials = std::nullopt);

  /// Errors: those of asking the head (kConnection, kTimeout, kJoinRefused).
  StatusOr<std::shared_ptr<const IdentityShown>> Get();

 private:
  StatusOr<std::shared_ptr<const IdentityShown>> Ask();

  const std::shared_ptr<ControlClient> control_;
  Mutex mutex_;
  std::shared_ptr<const IdentityShown> shown_ ABSL_GUARDED_BY(mutex_);
  std::optional<net::Credentials> joined_with_ ABSL_GUARDED_BY(mutex_);
  Instant renew_after_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace troupe::client
