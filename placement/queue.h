// The waiting groups that get a place now, and the one that keeps one for later.
//
// One pass over the queue, in its order. The first request that must wait and could be placed were
// its nodes idle keeps the nodes that are nearest to it: later ones get only what is left beside
// those, so a stream of small ones never starves a large one (P6) and what it does not need is
// still used (backfill). An urgent one keeps every node it could use: nothing passes it there,
// whatever runs for ever elsewhere. What is granted stays taken from the index; what is kept goes
// back with the pass.
//   Pass pass(cluster);
//   for (const Request& request : in_order) if (auto plan = pass.Try(request)) Start(*plan);
// Pure; borrows the index; what others change in it meanwhile is kept.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "placement/cluster_index.h"
#include "placement/packer.h"

namespace troupe::placement {

/// Takes what a plan for the request uses.
void TakePlan(ClusterIndex& cluster, const Request& request, const Plan& plan);

/// Returns the plan of a request that must wait: on the nodes that need the fewest resources given
/// back before it fits. nullopt: not even were every open node idle.
std::optional<Plan> PlanAhead(ClusterIndex& cluster, const Request& request);

class Pass {
 public:
  /// `keeps_places` false: whoever fits goes, without regard to who waits.
  explicit Pass(ClusterIndex& cluster, bool keeps_places = true)
      : cluster_(cluster), keeps_(!keeps_places) {}
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// The next in the queue. `ready` false: it waits in any case (for a pause to end), but keeps its
  /// turn.
  std::optional<Plan> Try(const Request& request, bool ready = true, bool urgent = false);
  /// The first half of it: a place now, or none.
  std::optional<Plan> Place(const Request& request);
  /// The other: where it will go, nullopt where it cannot; what of that is free is kept.
  std::optional<Plan> Keep(const Request& request);
  /// Returns true if a group that must wait keeps a place already.
  bool keeps() const { return keeps_; }
  /// Keeps what this plan uses, as far as it is free, for one whose room is on its way.
  void KeepPlan(const Request& request, const Plan& plan);

 private:
  struct Shape {
    bool operator()(const Request& a, const Request& b) const;
  };
  void KeepAll(const Request& request);
  void KeepOf(const NodeId& node, const Resources& amount);

  ClusterIndex& cluster_;
  std::map<NodeId, Resources> kept_;
  bool keeps_;                       // already, or never
  std::set<Request, Shape> failed_;  // requests that failed in this pass, which fail again
};

}  // namespace troupe::placement
