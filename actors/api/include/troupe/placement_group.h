// Placement groups: bundles of resources on the nodes of the cluster, reserved together, all or
// nothing.
//
//   auto group = troupe::CreatePlacementGroup({{{"CPU", 1}}, {{"GPU", 1}}}, {.strategy = "PACK"});
//   group.Ready(30s);
//   auto worker = troupe::Create<Worker>({.num_cpus = 1, .placement_group = group, .bundle = 0});
//   troupe::RemovePlacementGroup(group);
#pragma once

#include <troupe/ref.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

using ResourceAmounts = std::map<std::string, double>;

struct PlacementGroupOptions {
  /// PACK (few nodes), SPREAD (many), STRICT_PACK (one), STRICT_SPREAD (all different).
  std::string strategy = "PACK";
  std::string name;       // by which GetPlacementGroup finds it; unique in its namespace
  bool detached = false;  // outlives this program
  int priority = 0;       // the highest is first among those that wait
};

/// A handle. Its group stays until it is removed, or this program ends.
class TROUPE_API PlacementGroup {
 public:
  PlacementGroup() = default;
  PlacementGroup(std::string id, std::size_t bundle_count)
      : id_(std::move(id)), bundle_count_(bundle_count) {}

  /// 32 hex digits.
  const std::string& id() const { return id_; }
  std::size_t bundle_count() const { return bundle_count_; }
  /// Blocks until all bundles are reserved. Throws TimeoutError, PlacementError (it can no longer
  /// be placed, or was removed), ConnectionError.
  void Ready(Timeout timeout = std::nullopt) const;
  /// The names of the nodes where its bundles are, by index, once it is ready.
  std::vector<std::string> Nodes() const;

 private:
  std::string id_;
  std::size_t bundle_count_ = 0;
};

/// Asks for a group; returns once the head has taken the request. Throws PlacementError at once,
/// with the reason per node, where the cluster can never hold it; InvalidError, AlreadyExistsError,
/// ConnectionError.
TROUPE_API PlacementGroup CreatePlacementGroup(const std::vector<ResourceAmounts>& bundles,
                                               const PlacementGroupOptions& options = {});
/// The group of that name in this program's namespace. Throws NotFoundError.
TROUPE_API PlacementGroup GetPlacementGroup(const std::string& name);
/// Removes it; actors inside are ended. Blocks for a request.
TROUPE_API void RemovePlacementGroup(const PlacementGroup& group);

}  // namespace troupe
