// Placement of an actor: a bundle of its group, or a node that can take it.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "head/core/machine/turn.h"
#include "head/core/placed/views.h"
#include "placement/request.h"

namespace troupe::head {

/// Returns the request that must fit: the resources the actor holds or, when it holds none, those
/// it is placed by.
placement::Request PlaceRequestOf(const wire::ActorSpec& spec);
/// The cluster's nodes, or those of a launch's reservation.
Scope ScopeOfLaunch(Turn& turn, const LaunchId& launch);
/// Returns true if one of the bundles (the named one, or any) can ever hold it.
bool FitsSomeBundle(const Group& group, const wire::ActorSpec& spec);
/// The reservation of an actor that holds something and is in no group.
wire::GroupSubmitted OwnGroupOf(Turn& turn, const Request& request, const wire::ActorSpec& spec,
                                const GroupId& id);

/// Lives for one scheduling pass; counts what it gave away.
class ActorPlacer {
 public:
  explicit ActorPlacer(Turn& turn);
  /// nullopt: not now.
  std::optional<wire::ActorPlaced> Choose(const Actor& actor);

 private:
  Resources FreeIn(const wire::BundlePlace& bundle, const GroupId& group) const;
  std::optional<wire::ActorPlaced> InGroup(const Actor& actor);
  std::optional<wire::ActorPlaced> OnSomeNode(const Actor& actor);
  std::vector<std::uint32_t> GpusIn(const wire::BundlePlace& place, const GroupId& group,
                                    std::uint64_t amount) const;

  Turn& turn_;
  std::map<NodeId, std::size_t> actors_on_;
};

}  // namespace troupe::head
