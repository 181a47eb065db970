// A temporary change of an index's free amounts.
//
// Gives back, at the latest at its end, what they were before; nobody else may change those nodes
// in between. Pure.
#pragma once

#include <map>
#include <utility>

#include "placement/cluster_index.h"

namespace troupe::placement {

class Trial {
 public:
  explicit Trial(ClusterIndex& cluster) : cluster_(cluster) {}
  ~Trial() {
    for (const auto& [node, free] : before_) cluster_.SetFree(node, free);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  void SetFree(const NodeId& node, Resources free) {
    const Host* host = cluster_.Find(node);
    if (host == nullptr) return;
    before_.try_emplace(node, host->view.free);
    cluster_.SetFree(node, std::move(free));
  }
  void Restore(const NodeId& node) {
    const auto known = before_.find(node);
    if (known != before_.end()) cluster_.SetFree(node, known->second);
  }

 private:
  ClusterIndex& cluster_;
  std::map<NodeId, Resources> before_;
};

}  // namespace troupe::placement
