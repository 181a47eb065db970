// Checks of every call of the fake NCCL on its way in: the communicator is one that lives, no other
// thread is inside it or inside another one of its device, and it is ready for the call.
#pragma once

#include "tests/fakes/nccl/comm.h"

namespace troupe::fakes {

enum class Needs { kReady, kExists, kQuiet };

/// Holds a communicator and its device for the length of one call; not copyable.
///   Entry entry(comm, "ncclAllReduce", Needs::kReady);
///   if (entry.refused()) return entry.result();
class Entry {
 public:
  /// kReady: not in progress and without an error; kQuiet: not in progress; kExists: in any state.
  Entry(ncclComm* comm, const char* call, Needs needs);
  ~Entry() { Leave(); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  bool refused() const { return result_ != train::NcclResult::kSuccess; }
  train::NcclResult result() const { return result_; }
  /// Before the communicator is freed.
  void Leave();

 private:
  ncclComm* comm_ = nullptr;
  int device_ = -1;
  bool holds_device_ = false;
  train::NcclResult result_ = train::NcclResult::kSuccess;
};

/// Sets the last error; returns `result`.
train::NcclResult Refused(train::NcclResult result, const std::string& what);

}  // namespace troupe::fakes
