// The accelerators of this node, as NVIDIA's management library tells them; empty without a driver.
//
// Blocking once, at start (the library takes about 20 ms). No CUDA call is made: a zygote's
// children could not use CUDA after one. CUDA_VISIBLE_DEVICES of the worker narrows the inventory
// (a scheduler sets it); its order and its entries (numbers, or UUIDs of devices and MIG slices)
// are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/wire/messages.h"
#include "worker/devices/nvml.h"

namespace troupe::worker {

struct Inventory {
  std::vector<wire::Device> devices;  // index: the id used everywhere
  std::vector<GpuLinks> links;        // by the same ids
  std::vector<std::uint32_t> gpu_ids;
  std::map<std::uint32_t, std::string> tokens;  // id -> entry of CUDA_VISIBLE_DEVICES
  std::string note;                             // why there is none, for the log
};

/// Finds the machine's devices, and those that the node offers. `visible` is the worker's
/// CUDA_VISIBLE_DEVICES, if it is set; `count`, how many it was told to offer, if it was.
Inventory FindDevices(const std::optional<std::string>& visible,
                      std::optional<std::uint32_t> count);
/// The first `count` of those found here. Where there are fewer, the others are logical, for
/// machines without any and for tests: they have no properties, and their entries of
/// CUDA_VISIBLE_DEVICES name none of the machine's devices, of which there are `machine_count`.
/// Pure.
Inventory Offer(Inventory found, std::size_t machine_count, std::uint32_t count);
/// The type of all of them as launches and actors ask for it: "H100" of "NVIDIA H100 80GB HBM3",
/// "A100" of "NVIDIA A100-SXM4-40GB", "RTX4090" of "NVIDIA GeForce RTX 4090". Empty: there are
/// none, or of several types. Pure.
std::string GpuTypeOf(const std::vector<wire::Device>& devices);
/// `all` narrowed to the entries of `visible`; pure.
Inventory Narrow(const Inventory& all, const std::string& visible);

}  // namespace troupe::worker
