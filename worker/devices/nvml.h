// NVIDIA's management library, loaded at run time with prototypes of our own: no header and no
// driver is needed to build, and a machine without the library simply has no devices.
#pragma once

#include <vector>

#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

namespace troupe::worker {

/// All devices of the machine, in the library's (PCI bus) order. kNotFound without library or
/// driver.
StatusOr<std::vector<wire::Device>> ReadNvml();

}  // namespace troupe::worker
