// Ranks of a group that share a node, and the roles between nodes. Pure.
//
//   PL1  Nodes are numbered in the order of their first ranks, and the ranks of a node in the
//        group's order: every rank finds the same.
//   PL2  A rail is one rank of each node, of the same place on all of them; there are as many as
//        the node with the fewest ranks has, so that every rail is complete.
//   PL3  For each rank every node has exactly one rank that serves it: the rank itself on its own
//        node, and elsewhere one by its place, so that a node's ranks share the work.
//   PL4  What is broadcast comes to each node exactly once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::train {

class Places {
 public:
  /// `hosts`: every rank's, in order; ranks with the same one share a node. `rank` is whose view
  /// it is.
  Places(const std::vector<std::string>& hosts, int rank);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return static_cast<int>(ranks_of_.size()); }
  int node() const { return node_of(rank_); }
  int place() const { return place_of(rank_); }
  int node_of(int rank) const { return node_of_[static_cast<std::size_t>(rank)]; }
  /// Among the ranks of its node, from 0.
  int place_of(int rank) const { return place_of_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& ranks_of(int node) const {
    return ranks_of_[static_cast<std::size_t>(node)];
  }
  const std::vector<int>& neighbours() const { return ranks_of(node()); }
  bool is_here(int rank) const { return node_of(rank) == node(); }
  int leader_of(int node) const { return ranks_of(node).front(); }

  int rails() const { return rails_; }
  /// The ranks of the node that has most.
  int ranks_of_a_node_max() const { return ranks_max_; }
  /// Returns the rank of `node` that serves `rank` (PL3).
  int Serving(int node, int rank) const;

 private:
  int rank_, rails_ = 0, ranks_max_ = 0;
  std::vector<int> node_of_, place_of_;
  std::vector<std::vector<int>> ranks_of_;
};

/// From which node something that is broadcast comes to a node (-1: it begins there), and to which
/// it goes on. Little of it goes from the root to all, much from node to node, so that no node
/// sends it twice (PL4).
struct Route {
  int from = -1;
  std::vector<int> to;
};
inline constexpr std::size_t kStarBytesMax = 64 << 10;
Route BroadcastRoute(int root, int node, int nodes, std::size_t bytes);

}  // namespace troupe::train
