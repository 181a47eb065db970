// The free resources of one place, a node or a reservation on it, with GPUs by their ids.
//
// Pure; view: one node. A whole GPU is one device; a fraction below one shares a device with other
// fractions; 1.5 GPUs is refused, since no mask of devices means that.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "placement/gpu_choice.h"
#include "worker/core/amounts.h"

namespace troupe::worker {

/// Resources taken out of a pool, and given back as they are.
struct Take {
  Amounts amounts;                              // all but GPUs
  std::map<std::uint32_t, std::uint64_t> gpus;  // device -> share

  std::vector<std::uint32_t> GpuIds() const;
};

class ResourcePool {
 public:
  ResourcePool() = default;
  /// `amounts` counts GPUs by number; `gpus` says which and where, and has as many.
  ResourcePool(Amounts amounts, std::vector<placement::GpuPlace> gpus);
  /// Returns the pool that a reservation of this pool owns and may lend to child leases.
  ResourcePool Inside(const Take& take) const;

  /// Takes all of `wanted`, or nothing: then `reason` says which resource is short and by how much.
  std::optional<Take> TakeOut(const Amounts& wanted, std::string* reason);
  void PutBack(const Take& take);

  /// Somebody who holds so much does not use it, and others may; wants it back. It has it then:
  /// what was given to others meanwhile is owed, and the next that comes back is not free before
  /// that is made good.
  void Lend(const std::string& name, std::uint64_t amount);
  void Reclaim(const std::string& name, std::uint64_t amount);
  /// Amounts in use twice.
  const Amounts& owed() const { return owed_; }

  /// Free amounts; "GPU" is the sum over devices.
  Amounts Free() const;

 private:
  std::optional<std::map<std::uint32_t, std::uint64_t>> ChooseGpus(std::uint64_t wanted,
                                                                   std::string* reason) const;

  Amounts free_;                                 // all but GPUs
  Amounts owed_;  // resources in use twice; where it is not zero, nothing is free
  std::map<std::uint32_t, std::uint64_t> gpus_;  // free share of each device, zero entries kept
  std::vector<placement::GpuPlace> places_;
};

}  // namespace troupe::worker
