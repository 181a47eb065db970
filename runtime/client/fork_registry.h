// Descriptors that a forked child must not keep, and how an object learns that it is in one.
//
// A child that holds its parent's control socket makes the parent look alive after its death; so
// the sockets registered here are closed in the child before fork() returns. Generation() differs
// in the child: an object made before the fork is inert there, and touches neither its locks nor
// its thread. Thread-safe. exec is covered by close-on-exec.
#pragma once

#include <cstdint>

namespace troupe::client {

class ForkRegistry {
 public:
  static std::uint32_t Generation();
  /// The first call installs the fork handlers.
  static void Add(int fd);
  /// Before the descriptor is closed.
  static void Remove(int fd);
};

}  // namespace troupe::client
