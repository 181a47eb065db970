// How a node is connected: its network interfaces, RDMA ports, links between its GPUs; as a text
// that travels as a label of the node, and what of it reaches the other nodes of a launch. Pure.
//
// The text has neither commas nor equals signs, so that a label can be given it on a command line:
// records that end with ';', fields that end with a space, the first says of what.
//   if eth0 up 100000 10.0.0.1/24 fd00::2/64      state, Mbit/s (0: not known), addresses
//   rdma mlx5_0:1 InfiniBand ACTIVE 400000 4X_NDR ib0 fe80000000000000
//                                                 layer, state, Mbit/s, width and signalling,
//                                                 interface, networks that it is in; "-": none
//   nvlink 0-7 18 26562                           GPUs, links that are up of each, MB/s of a link
//   gpudirect nvidia_peermem                      how network cards read the GPUs' memory
// A record of a kind that is not known is passed over: nodes of other versions may write more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::placement {

/// The label; views of nodes leave it out and show what it says (`troupe/_cluster/fabric.py`).
inline constexpr char kFabricLabel[] = "troupe.io/fabric";
/// In the environment that comes with ranks: what NCCL_IB_HCA is unless somebody has said it
/// already. The ranks do not get it under this name.
inline constexpr char kRdmaPortsVariable[] = "TROUPE_RDMA_PORTS";
/// In the environment that comes with ranks: the addresses and networks from which the store of
/// their launch takes connections, separated by spaces. Only the store's process gets it.
inline constexpr char kStorePeersVariable[] = "TROUPE_STORE_PEERS";
/// Among them: nodes may come to the launch later, whose addresses the store's process asks for.
inline constexpr char kStorePeersMore[] = "+";
/// State of an active port that programs cannot open: a container without /dev/infiniband.
inline constexpr char kNoVerbsDevice[] = "NO_VERBS_DEVICE";
inline constexpr std::size_t kFabricRecordsMax = 128;
inline constexpr std::size_t kFabricFieldsMax = 40;

struct NetworkInterface {
  std::string name;
  bool up = false;
  std::uint64_t mbit_s = 0;            // 0: not known
  std::vector<std::string> addresses;  // "10.0.0.1/24"
};

/// A port of an InfiniBand, RoCE or other RDMA device.
struct RdmaPort {
  std::string name;   // "mlx5_0:1", as NCCL_IB_HCA has it
  std::string layer;  // "InfiniBand"; RoCE is "Ethernet"
  std::string state;  // "ACTIVE", "DOWN", ...
  std::uint64_t mbit_s = 0;
  std::string width;                  // "4X_NDR"
  std::string interface;              // "ib0"
  std::vector<std::string> networks;  // "fe80000000000000" of a subnet manager, "10.1.0.0/24"
};

/// GPUs with equally many links.
struct NvLinks {
  std::string gpus;  // "0-7"
  std::uint32_t links = 0;
  std::uint32_t mbyte_s = 0;  // for one link, one way
};

struct Fabric {
  std::vector<NetworkInterface> interfaces;
  std::vector<RdmaPort> ports;
  std::vector<NvLinks> nvlinks;
  std::string gpudirect;
};

/// Empty for a node that has none of these.
std::string FabricText(const Fabric& fabric);
/// Parses a fabric from a text of any origin.
Fabric ParseFabric(std::string_view text);

/// For each of these nodes the value of NCCL_IB_HCA: the active ports in networks in which every
/// one of the nodes has an active port, of one layer: that with which the node that has least has
/// most. Empty for all where there is no such network (ports may reach each other by routing:
/// NCCL decides itself), or less than two nodes.
std::vector<std::string> ReachingPorts(const std::vector<Fabric>& nodes);

}  // namespace troupe::placement
