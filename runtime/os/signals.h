// Signals as a descriptor, so that they are read by the loop like everything else.
//
// View: one process. Make it before any other thread starts: the signals are blocked in the calling
// thread and in those it starts later. Forked children that execute get an empty mask (Spawn does).
#pragma once

#include <initializer_list>
#include <optional>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace troupe::os {

class SignalFd {
 public:
  static StatusOr<SignalFd> Open(std::initializer_list<int> signals);
  /// Readable when a signal waits.
  int fd() const { return fd_.get(); }
  /// The next waiting signal; nullopt when there is none. Never blocks.
  std::optional<int> Next();

 private:
  explicit SignalFd(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace troupe::os
