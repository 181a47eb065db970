// Networks of a launch's nodes, as its nodes are told of each other's.
#pragma once

#include <string>
#include <vector>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Found once for all nodes of the launch.
struct LaunchNetworks {
  /// For each node of a launch with GPUs the RDMA ports by which it reaches the others, as
  /// NCCL_IB_HCA names them; empty: nothing is known of that, or needed.
  std::vector<std::string> rdma_ports;
  /// For the fence of the launch's store: where each node listens, and the addresses of its
  /// interfaces; all networks where nodes that are not known yet may come to it (`replace`).
  /// Empty: the launch is on one node.
  std::string store_peers;
};
LaunchNetworks NetworksOf(Turn& turn, const Launch& launch);

}  // namespace troupe::head
