#include "head/core/launched/launch_networks.h"

#include <set>
#include <vector>

#include "head/core/machine/wire_convert.h"
#include "placement/fabric.h"

namespace troupe::head {
namespace {

// Returns the fabric that the node told when it joined; empty for a node that is not known.
placement::Fabric FabricOf(const Node* node) {
  placement::Fabric fabric;
  if (node == nullptr) return fabric;
  for (const wire::Label& label : node->info.labels) {
    if (label.key == placement::kFabricLabel) fabric = placement::ParseFabric(label.value);
  }
  return fabric;
}

}  // namespace

LaunchNetworks NetworksOf(Turn& turn, const Launch& launch) {
  LaunchNetworks networks;
  networks.rdma_ports.resize(launch.nodes.size());
  if (launch.nodes.size() < 2) return networks;
  std::vector<placement::Fabric> fabrics;
  std::set<std::string> addresses;
  for (const NodeId& id : launch.nodes) {
    const Node* node = turn.SeeNode(id);
    fabrics.push_back(FabricOf(node));
    if (node != nullptr) addresses.insert(node->info.listen_host);
    for (const placement::NetworkInterface& each : fabrics.back().interfaces) {
      for (const std::string& address : each.addresses)
        addresses.insert(address.substr(0, address.find('/')));
    }
  }
  if (FromWire(launch.spec.per_rank).Get("GPU") > 0)
    networks.rdma_ports = placement::ReachingPorts(fabrics);
  if (launch.spec.on_rank_death == wire::RankDeath::kReplace)
    addresses.insert(placement::kStorePeersMore);
  for (const std::string& each : addresses)
    networks.store_peers += (networks.store_peers.empty() ? "" : " ") + each;
  return networks;
}

}  // namespace troupe::head
