// Figures of this node's GPUs, by NVIDIA's management library, which stays open meanwhile.
//
// View: one node; one thread at a time. Without the library, or a driver, there are no figures, and
// it is not looked for again. No CUDA call is made (devices/inventory.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/wire/messages.h"

namespace troupe::worker {

class GpuMeasurer {
 public:
  /// Measures those of `devices` that the driver knows by their UUIDs.
  explicit GpuMeasurer(std::vector<wire::Device> devices);
  ~GpuMeasurer();
  GpuMeasurer(const GpuMeasurer&) = delete;
  GpuMeasurer& operator=(const GpuMeasurer&) = delete;

  std::vector<wire::Measure> Read();

 private:
  class Library;
  const std::vector<wire::Device> devices_;
  std::unique_ptr<Library> library_;
  bool looked_ = false;
};

}  // namespace troupe::worker
