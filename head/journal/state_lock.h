// The lock that allows one head per state folder: on a file in it, held for life.
//
// Network file systems are refused: their locks are not trusted. Blocking for microseconds.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace troupe::head {

class StateLock {
 public:
  /// Errors: kAlreadyExists (another head has it; which process), kInvalid (network file system).
  static StatusOr<StateLock> Take(const std::string& folder);

 private:
  explicit StateLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace troupe::head
