// The nodes of a cluster, kept so that a plan need not look at each: pools of equal nodes by what
// is free and by totals, and all nodes in the order in which they stand in the cluster.
//
// View: one owner, who puts in what it learns and takes out what it gives away; planning (packer.h)
// changes nothing but what the index knows of labels. Pure; movable, not copyable. Cost: a change
// of a node's free amounts is logarithmic; a resource or a selected label that is new rebuilds the
// index once.
//   ClusterIndex cluster(nodes);
//   if (auto plan = Pack(cluster, request)) cluster.Take(plan->nodes[0], request.bundles[0]);
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "placement/host.h"
#include "placement/pools.h"

namespace troupe::placement {

enum class Using : std::uint8_t { kFree = 0, kTotal = 1 };

class ClusterIndex {
 public:
  /// At most kLevelsMax levels, widest first; later ones are left out.
  explicit ClusterIndex(Levels levels = DefaultLevels());
  explicit ClusterIndex(const std::vector<NodeView>& nodes, Levels levels = DefaultLevels());
  ClusterIndex(ClusterIndex&&) = default;
  ClusterIndex& operator=(ClusterIndex&&) = default;

  /// A new node, or what is now true of a known one.
  void Put(NodeView node);
  void Erase(const NodeId& node);
  void SetFree(const NodeId& node, Resources free);
  /// Less is free there; down to zero. An unknown node is no error: it may have gone.
  void Take(const NodeId& node, const Resources& amount);

  std::size_t size() const { return hosts_.size(); }
  /// How often Put told of something that may make room: what did not fit before fits no better
  /// while this is the same.
  std::uint64_t growth() const { return growth_; }
  /// The number of kinds and domains of nodes, resources and labels.
  std::size_t numbered() const {
    return kinds_.size() + domain_ids_.size() + names_.size() + known_labels_.size();
  }
  const Levels& levels() const { return levels_; }
  /// null: unknown. Valid until the node is erased.
  const Host* Find(const NodeId& node) const;
  /// By place: near nodes stand together.
  const std::vector<Host*>& in_place_order() const { return order_; }
  const PoolSet& pools(Using what) const { return pools_[static_cast<std::size_t>(what)]; }

  /// Tells nodes apart by these labels from now on.
  void Know(const Selector& selector);
  /// The known labels of a kind of node (Pool::kind).
  const Labels& LabelsOf(std::uint32_t kind) const { return kinds_[kind]; }
  /// nullopt: asks for something no node has.
  std::optional<Amounts> AmountsOf(const Resources& resources) const;

 private:
  bool Learn(const NodeView& node);
  Amounts Converted(const Resources& resources) const;
  void Enter(Host& host, Using what);
  void Leave(Host& host, Using what);
  std::uint32_t KindOf(const Labels& labels);
  void FindDomains(Host& host);
  void GivePlace(std::size_t at);
  bool ForgetFormer();
  void Rebuild();

  Levels levels_;
  std::vector<std::string> names_;      // the resource that each dimension stands for
  std::set<std::string> known_labels_;  // labels a selector named
  std::vector<Labels> kinds_;
  std::map<Labels, std::uint32_t> kind_ids_;
  std::map<std::vector<std::string>, std::uint32_t> domain_ids_;
  std::unordered_map<NodeId, std::unique_ptr<Host>> hosts_;
  std::vector<Host*> order_;
  std::array<PoolSet, 2> pools_;
  std::uint64_t growth_ = 0;
  std::size_t names_kept_ = 0;  // when those of former nodes were forgotten
};

}  // namespace troupe::placement
