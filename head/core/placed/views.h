// The cluster as placement sees it, and requests in its terms.
//
// What placement knows of the nodes is kept (State::cluster); a node that may have changed is
// looked up anew when it is next asked, so a decision does not cost a look at every node.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "head/core/machine/turn.h"
#include "placement/cluster_index.h"

namespace troupe::head {

/// Says what an actor or a placement group is called: "called 'name' in namespace 'space'".
std::string Called(const std::string& name, const std::string& space);
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

}  // namespace troupe::head
