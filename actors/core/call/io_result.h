// The result of a try to read or write without blocking.
#pragma once

#include <cstddef>

namespace troupe::actors {

enum class IoOutcome { kProgress, kWouldBlock, kEnded };

struct IoResult {
  IoOutcome outcome = IoOutcome::kWouldBlock;
  std::size_t bytes = 0;
  int error = 0;  // why kEnded: errno, 0 for an orderly end of the stream, kTlsBroken
};
/// The bytes were not what the other end of the TLS session would send.
inline constexpr int kTlsBroken = -1;

}  // namespace troupe::actors
