// Why a request is not placed, as a person reads it: what was asked, then a line per group of equal
// nodes saying what is missing there, then what is missing in the whole.
//
// Pure. `never` tells a refusal for ever (no state of this cluster could hold it) from "not now".
#pragma once

#include <string>
#include <vector>

#include "placement/cluster_index.h"
#include "placement/request.h"

namespace troupe::placement {

struct Refusal {
  bool never = false;
  /// All of it: "3 x {GPU: 8} with gpu_type=H100 can never be placed\n  node-a: ...".
  std::string text;
  /// A line such as "16 x {GPU: 1}: node-a, node-b in use: 1 more GPU needed; node-c suspect: ...".
  std::string summary;
};

/// For a request that Pack could not place.
Refusal Explain(ClusterIndex& cluster, const Request& request);
Refusal Explain(const std::vector<NodeView>& nodes, const Request& request);

}  // namespace troupe::placement
