// How many connections may be open that have not proven who they are: 16 per IP address, 256 in all.
//
// View: one listener. Thread-safe (a handshake may end on another thread than the accepting one).
// A ticket is held by an unauthenticated connection and dropped when it is authenticated or closed;
// it may outlive the Admission.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace troupe::net {

class Admission {
 public:
  explicit Admission(std::size_t per_host_max = 16, std::size_t total_max = 256);
  /// A ticket for one more from `host` (empty: a Unix socket, which counts in the total only), or
  /// null when there are too many.
  std::shared_ptr<void> Admit(const std::string& host);
  std::size_t open() const;

 private:
  struct Counts;
  std::shared_ptr<Counts> counts_;
};

}  // namespace troupe::net
