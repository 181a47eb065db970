// How this node is connected, as the kernel and NVIDIA's driver tell it: interfaces, RDMA ports,
// links between GPUs, and how network cards read the GPUs' memory.
//
// Blocking once, at start. What lies under /sys and /proc is read beneath `root`, "" for this
// machine's own: a test makes a tree of its own. Nothing there is an empty answer, never an error.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "placement/fabric.h"
#include "worker/devices/nvml.h"

namespace troupe::worker {

/// Addresses with the length of their networks, "10.0.0.1/24", by interface; no loopback and none
/// that a link has by itself (fe80::, 169.254.).
using Addresses = std::map<std::string, std::vector<std::string>>;

/// This machine's.
Addresses LocalAddresses();
/// Interfaces that have an address or are up, those of hardware; RDMA ports; GPUDirect.
placement::Fabric ReadFabric(const std::string& root, const Addresses& addresses);
/// GPUs with equally many and equally fast links together: "0-3", "0-1+6". Those without any are
/// left out.
std::vector<placement::NvLinks> GroupLinks(const std::vector<GpuLinks>& gpus);
/// "10.0.0.0/24" of "10.0.0.1/24"; empty for what is no address.
std::string NetworkOf(const std::string& address);
/// Returns the kind of the fastest active port, for the label `rdma`: "infiniband" or "roce"; empty
/// where none is active.
std::string RdmaKind(const placement::Fabric& fabric);
/// The names that NCCL's files of this host give values to: NCCL_CONF_FILE if it is set, else
/// ~/.nccl.conf; and /etc/nccl.conf.
std::set<std::string> NcclFileNames(const std::string& root, const std::string& file,
                                    const std::string& home);

}  // namespace troupe::worker
