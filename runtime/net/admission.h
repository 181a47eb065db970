// How many connections may be open that have not proven who they are: 16 per IP address, 256 in
// all.
//
//   AD-1  One more from an address that has its share, or when all are taken, is let in when
//         another has been silent: the one that has been silent longest (of that address; of all)
//         is shut down and makes room.
//   AD-2  Silent is who has sent nothing yet, or nothing for kPatience, and has nothing unread
//         here. Who speaks is never sent away for another; so a storm of honest peers is served in
//         its order, and the newest are refused.
//   AD-3  A Unix socket has no address and is never sent away.
//
// View: one listener. Thread-safe (a handshake may end on another thread than the accepting one).
// A ticket is held by an unauthenticated connection and dropped when it is authenticated or closed;
// it may outlive the Admission.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/time.h"

namespace troupe::net {

/// For how long a TCP connection has sent nothing (AD-2); nullopt: it speaks, or is no TCP
/// connection.
std::optional<Duration> SilenceOf(int fd);

class Admission {
 public:
  static constexpr std::chrono::seconds kPatience{1};

  explicit Admission(std::size_t per_host_max = 16, std::size_t total_max = 256);
  /// A ticket for one more from `host` (empty: a Unix socket, which counts in the total only), or
  /// null when there are too many. `fd` is its socket, of which a duplicate is kept as long as the
  /// ticket; -1: none, it is never silent.
  std::shared_ptr<void> Admit(const std::string& host, int fd = -1);
  std::size_t open() const;

 private:
  struct Counts;
  std::shared_ptr<Counts> counts_;
};

}  // namespace troupe::net
