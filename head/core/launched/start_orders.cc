#include "head/core/launched/start_orders.h"

#include <algorithm>
#include <utility>

#include "head/core/launched/jobs/kept_logs.h"
#include "head/core/launched/rank_ends.h"
#include "placement/fabric.h"

namespace troupe::head {
namespace {

// With the address of the node that holds it: workers fetch from each other.
wire::BlobRef WithHolder(Turn& turn, wire::BlobRef blob) {
  const Node* holder = turn.SeeNode(blob.holder);
  if (holder == nullptr) return blob;
  blob.host = holder->info.listen_host;
  blob.port = holder->info.listen_port;
  blob.unix_path = holder->info.unix_path;
  blob.boot_id = holder->info.boot_id;
  return blob;
}

}  // namespace

void SendStartRanks(Turn& turn, const Launch& launch, std::size_t node_rank,
                    const LaunchNetworks& networks,
                    const std::vector<wire::NewRank>* others) {
  const NodeId& node = launch.nodes[node_rank];
  wire::StartRanks start;
  start.launch = launch.id;
  start.epoch = launch.epoch;
  start.generation = kGeneration;
  start.group = launch.group;
  start.attempt = launch.attempt;
  start.mode = launch.spec.mode;
  start.name = launch.spec.name.empty() ? launch.spec.function_name : launch.spec.name;
  for (std::uint32_t r = 0; r < launch.ranks.size(); ++r) {
    const auto is_this = [r](const wire::NewRank& each) { return each.rank == r; };
    if (launch.ranks[r].node != node) continue;
    if (others != nullptr && std::none_of(others->begin(), others->end(), is_this)) continue;
    start.ranks.push_back({r, launch.ranks[r].local_rank, launch.ranks[r].life});
  }
  start.world_size = static_cast<std::uint32_t>(launch.ranks.size());
  start.node_rank = static_cast<std::uint32_t>(node_rank);
  start.node_count = static_cast<std::uint32_t>(launch.nodes.size());
  start.hosts_store = node_rank == 0 && others == nullptr;
  start.hang_ms = launch.spec.hang_ms;
  start.keep_log_bytes = KeptLogBytesOf(launch);
  if (others != nullptr) {
    start.group = others->front().group;
    start.attempt = others->front().attempt;
    start.gpu_ids = others->front().gpu_ids;
  } else if (const Group* gang = turn.FindGroup(launch.group)) {
    for (const wire::BundlePlace& place : gang->places) {
      if (place.node == node) start.gpu_ids = place.gpu_ids;
    }
  }
  start.environment = launch.spec.environment;
  std::vector<wire::EnvVar>& env = start.environment.env;
  const std::string& ports = networks.rdma_ports[node_rank];
  if (!ports.empty()) env.push_back({placement::kRdmaPortsVariable, ports, false});
  if (node_rank == 0 || launch.spec.on_rank_death != wire::RankDeath::kFail)  // may serve a store
    env.push_back({placement::kStorePeersVariable, networks.store_peers, false});
  start.payload = WithHolder(turn, launch.spec.payload);
  for (const NodeId& peer : launch.nodes) {
    const Node* other = turn.SeeNode(peer);
    if (peer != node && other != nullptr) start.peer_hosts.push_back(other->info.listen_host);
  }
  start.per_rank = launch.spec.per_rank;
  start.exit_grace_ms = launch.spec.exit_grace_ms;
  turn.ToNode(node, std::move(start), launch.payload);
}

void SendStartRanksOf(Turn& turn, const Launch& launch, const NodeId& node,
                      const std::vector<wire::NewRank>& ranks) {
  const auto place = std::find(launch.nodes.begin(), launch.nodes.end(), node);
  if (place == launch.nodes.end() || ranks.empty()) return;
  const auto node_rank = static_cast<std::size_t>(place - launch.nodes.begin());
  SendStartRanks(turn, launch, node_rank, NetworksOf(turn, launch), &ranks);
}

}  // namespace troupe::head
