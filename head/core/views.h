// The cluster as placement sees it, and requests in its terms.
//
// What placement knows of the nodes is kept (State::cluster); a node that may have changed is
// looked up anew when it is next asked, so a decision does not cost a look at every node.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "head/core/turn.h"
#include "placement/cluster_index.h"

namespace troupe::head {

/// Says what an actor or a placement group is called: "called 'name' in namespace 'space'".
std::string Called(const std::string& name, const std::string& space);
/// Why a node is dead, or takes nothing new: in a clause, without its state. Empty: nothing is
/// wrong with it.
std::string WhatIsWrong(const Turn& turn, const Node& node);
/// Returns the free resources of a node by the head's account: the node alone decides.
Resources FreeOf(const Node& node);
/// Nodes a top-level request may use, as they are now. Dead ones are left out.
placement::ClusterIndex& ClusterOf(Turn& turn);
/// Nodes of a group with its own bundles as totals and what its children left as free.
std::vector<placement::NodeView> GroupView(Turn& turn, const Group& parent);
/// The nodes a request may use: the cluster's, or those of what it is inside.
class Scope {
 public:
  explicit Scope(placement::ClusterIndex& cluster) : nodes_(&cluster) {}
  explicit Scope(const std::vector<placement::NodeView>& inside)
      : own_(std::make_unique<placement::ClusterIndex>(inside)), nodes_(own_.get()) {}
  placement::ClusterIndex& operator*() const { return *nodes_; }
  placement::ClusterIndex* operator->() const { return nodes_; }

 private:
  std::unique_ptr<placement::ClusterIndex> own_;
  placement::ClusterIndex* nodes_;
};
/// The nodes that a request inside `parent` may use; null: the cluster's.
Scope ScopeIn(Turn& turn, const Group* parent);
/// Returns true if a request that no node can hold now waits for one that joins; `asked` for by its
/// maker, or the cluster's policy. False inside a launch: no node joins its reservation.
bool MayWaitForNodes(const Turn& turn, const Request& request, bool asked);
/// Returns the nodes on which a group is to be placed.
Scope ScopeFor(Turn& turn, const Group& group);

placement::Request RequestOf(const Turn& turn, const wire::GroupSubmitted& spec);
/// Equal per-rank bundles of a launch.
placement::Request RequestOf(const wire::LaunchSpec& spec);

/// Facts for the nodes of a launch about each other's networks, found once for all of them.
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

/// Why a waiting group waits, in one line; empty when it does not.
std::string WaitingFor(Turn& turn, const Group& group);
/// Why a waiting group waits, in full: a line per group of equal nodes, who is before it, what its
/// last attempt met; empty when it does not wait.
std::string WhyWaiting(Turn& turn, const Group& group);
/// How many top-level requests are before it in the queue.
std::uint32_t QueuePlace(const Turn& turn, const Group& group);

}  // namespace troupe::head
