// NVIDIA's management library, loaded at run time with prototypes of our own: no header and no
// driver is needed to build, and a machine without the library simply has no devices.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

namespace troupe::worker {

/// A GPU's NVLinks that are up.
struct GpuLinks {
  std::uint32_t index = 0;  // as wire::Device
  std::uint32_t links = 0;
  std::uint32_t mbyte_s = 0;  // for one link, one way; 0: the driver does not tell
};

struct Gpus {
  std::vector<wire::Device> devices;
  std::vector<GpuLinks> links;  // an entry for each device, in that order
};

/// All devices of the machine, in the library's (PCI bus) order. kNotFound without library or
/// driver.
StatusOr<Gpus> ReadNvml();

}  // namespace troupe::worker
