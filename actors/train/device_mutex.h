// A mutex per GPU of this process, held for each call into NCCL: a communicator has one thread at
// a time, and so has a device, whichever communicator of it is called.
//
// Calls of communicators that do not block return at once, so that it is held for microseconds; an
// abort holds it for as long as that takes.
#pragma once

#include "runtime/base/mutex.h"

namespace troupe::train {

/// The device's, for as long as the process lives. Thread-safe.
Mutex& DeviceMutex(int device);

}  // namespace troupe::train
