#include "tests/fakes/nccl/entry.h"

#include <string>

#include "tests/fakes/nccl/settings.h"

namespace troupe::fakes {
namespace {

using train::NcclResult;

constexpr int kDevices = 65;  // the last is for communicators without a device
std::atomic<std::thread::id> inside_device[kDevices];

/// False where this thread is inside already; another one ends the process.
bool Hold(std::atomic<std::thread::id>& inside, const std::string& what) {
  std::thread::id nobody{};
  const auto self = std::this_thread::get_id();
  if (inside.compare_exchange_strong(nobody, self)) return true;
  if (nobody != self) FatalViolation("N2 one thread at a time", what);
  return false;
}

}  // namespace

NcclResult Refused(NcclResult result, const std::string& what) {
  SetLastError(what);
  return result;
}

Entry::Entry(ncclComm* comm, const char* call, Needs needs) {
  const std::string name = call;
  if (!comm) {
    result_ = Refused(NcclResult::kInvalidArgument, name + ": comm argument is NULL");
    return;
  }
  if (!IsLive(comm))
    FatalViolation("N9 no call after the end",
                   name + " of a communicator that was destroyed or aborted");
  if (!Hold(comm->inside, name + " while another thread is inside " + NameOf(comm)))
    FatalViolation("N2 one thread at a time", name + " from inside a call of " + NameOf(comm));
  comm_ = comm;
  device_ = comm->device < 0 ? kDevices - 1 : comm->device;
  holds_device_ =
      Hold(inside_device[device_],
           name + " while another thread is inside a communicator of the same device, " +
               std::to_string(comm->device));
  const auto state = comm->async.load();
  if (needs != Needs::kExists && state == NcclResult::kInProgress) {
    const std::string what = name + " of " + NameOf(comm) +
                             " while an earlier call of it is in progress: ask "
                             "ncclCommGetAsyncError first";
    Violation("N1 nothing while in progress", what);
    result_ = NcclResult::kInvalidArgument;
  } else if (needs == Needs::kReady) {
    result_ = state;  // as the real one: an asynchronous error is what every later call returns
  }
}

void Entry::Leave() {
  if (!comm_) return;
  if (holds_device_) inside_device[device_] = std::thread::id{};
  comm_->inside = std::thread::id{};
  comm_ = nullptr;
}

}  // namespace troupe::fakes
