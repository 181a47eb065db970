#include "actors/train/core/places.h"

#include <algorithm>

namespace troupe::train {

Places::Places(const std::vector<std::string>& hosts, int rank) : rank_(rank) {
  std::vector<std::string> names;
  for (const auto& host : hosts) {
    const auto found = std::find(names.begin(), names.end(), host);
    const auto node = static_cast<std::size_t>(found - names.begin());
    if (found == names.end()) {
      names.push_back(host);
      ranks_of_.emplace_back();
    }
    place_of_.push_back(static_cast<int>(ranks_of_[node].size()));
    ranks_of_[node].push_back(static_cast<int>(node_of_.size()));
    node_of_.push_back(static_cast<int>(node));
  }
  rails_ = static_cast<int>(hosts.size());
  for (const auto& ranks : ranks_of_) {
    rails_ = std::min(rails_, static_cast<int>(ranks.size()));
    ranks_max_ = std::max(ranks_max_, static_cast<int>(ranks.size()));
  }
}

int Places::Serving(int node, int rank) const {
  if (node_of(rank) == node) return rank;
  const auto& ranks = ranks_of(node);
  return ranks[static_cast<std::size_t>(place_of(rank)) % ranks.size()];
}

Route BroadcastRoute(int root, int node, int nodes, std::size_t bytes) {
  Route route;
  if (bytes <= kStarBytesMax) {
    if (node != root) return {root, {}};
    for (int each = 0; each < nodes; ++each)
      if (each != root) route.to.push_back(each);
    return route;
  }
  if (node != root) route.from = (node + nodes - 1) % nodes;
  if (const int next = (node + 1) % nodes; next != root) route.to.push_back(next);
  return route;
}

}  // namespace troupe::train
