#include "head/core/placed/actor_places.h"

#include <algorithm>
#include <utility>

#include "head/core/machine/wire_convert.h"
#include "placement/packer.h"

namespace troupe::head {

using placement::kUnit;

namespace {

/// Resources taken from its bundle, less those it lends.
Resources TakenBy(const Actor& actor) {
  Resources taken = FromWire(actor.spec.run_resources);
  taken.Set("CPU", taken.Get("CPU") - std::min(taken.Get("CPU"), actor.lends));
  return taken;
}

bool LivesIn(const wire::BundlePlace& bundle, const GroupId& group, const Actor& actor) {
  return actor.live() && actor.place.group == group &&
         actor.place.bundle == static_cast<std::int32_t>(bundle.index);
}

}  // namespace

placement::Request PlaceRequestOf(const wire::ActorSpec& spec) {
  placement::Request request;
  request.strategy = FromWire(spec.strategy);
  request.node = spec.node;
  request.node_soft = spec.node_soft;
  Restrict(request, spec.where, {});
  request.bundles = {FromWire(spec.run_resources.empty() ? spec.resources : spec.run_resources)};
  return request;
}

Scope ScopeOfLaunch(Turn& turn, const LaunchId& id) {
  const Launch* launch = turn.FindLaunch(id);
  if (launch == nullptr) return Scope(ClusterOf(turn));
  const Group* gang = turn.FindGroup(launch->group);
  return gang == nullptr ? Scope(std::vector<placement::NodeView>{}) : ScopeIn(turn, gang);
}

bool FitsSomeBundle(const Group& group, const wire::ActorSpec& spec) {
  const Resources wanted = FromWire(spec.run_resources);
  for (const wire::Bundle& bundle : group.spec.bundles) {
    const bool named = spec.bundle < 0 || bundle.index == static_cast<std::uint32_t>(spec.bundle);
    if (named && wanted.FitsIn(FromWire(bundle.resources))) return true;
  }
  return false;
}

wire::GroupSubmitted OwnGroupOf(Turn& turn, const Request& request, const wire::ActorSpec& spec,
                                const GroupId& id) {
  wire::GroupSubmitted group;
  group.group = id;
  group.actor = spec.actor;
  group.launch = request.launch;
  group.epoch = request.epoch;
  group.user = request.user;
  group.submitted_us = turn.wall_us;
  group.detached = true;  // ends with its actor, not with an owner
  group.strategy = spec.strategy;
  group.node = spec.node;
  group.node_soft = spec.node_soft;
  group.where = spec.where;
  group.priority = spec.priority;
  group.bundles.emplace_back();
  group.bundles.back().resources = spec.run_resources;
  if (const Launch* launch = turn.FindLaunch(request.launch)) group.parent = launch->group;
  return group;
}

ActorPlacer::ActorPlacer(Turn& turn) : turn_(turn) {
  for (const auto& [id, actor] : turn.state.actors) {
    if (actor.live() && !actor.place.node.IsNil()) ++actors_on_[actor.place.node];
  }
}

std::optional<wire::ActorPlaced> ActorPlacer::Choose(const Actor& actor) {
  auto place = actor.spec.group.IsNil() ? OnSomeNode(actor) : InGroup(actor);
  if (place) ++actors_on_[place->node];
  return place;
}

// GPUs of a bundle for `amount`: whole ones nobody of the bundle uses, or a share of one. Other
// bundles have others, or other nodes', whose numbers are the same.
std::vector<std::uint32_t> ActorPlacer::GpusIn(const wire::BundlePlace& place, const GroupId& group,
                                               std::uint64_t amount) const {
  std::map<std::uint32_t, std::uint64_t> used;
  for (const std::uint32_t gpu : place.gpu_ids) used[gpu] = 0;
  for (const auto& [id, actor] : turn_.state.actors) {
    if (!LivesIn(place, group, actor)) continue;
    const std::uint64_t share = FromWire(actor.spec.run_resources).Get("GPU");
    for (const std::uint32_t gpu : actor.place.gpu_ids) used[gpu] += std::min(share, kUnit);
  }
  std::vector<std::uint32_t> chosen;
  for (const auto& [gpu, taken] : used) {
    if (amount == 0) break;
    const std::uint64_t part = std::min(amount, kUnit);
    if (taken + part > kUnit) continue;
    chosen.push_back(gpu);
    amount -= part;
  }
  return chosen;
}

// Resources of a bundle that the group's actors have not taken.
Resources ActorPlacer::FreeIn(const wire::BundlePlace& bundle, const GroupId& group) const {
  Resources free = FromWire(bundle.resources);
  for (const auto& [id, actor] : turn_.state.actors) {
    if (LivesIn(bundle, group, actor)) free.Subtract(TakenBy(actor));
  }
  return free;
}

// If no bundle is named, chooses the one of which the fewest kinds of resources are left over, and
// of these the first: an actor that wants a CPU leaves a bundle with a GPU to one that wants both.
std::optional<wire::ActorPlaced> ActorPlacer::InGroup(const Actor& actor) {
  const Group* group = turn_.FindGroup(actor.spec.group);
  if (group == nullptr || group->state != wire::GroupState::kCreated) return std::nullopt;
  const Resources wanted = FromWire(actor.spec.run_resources);
  const wire::BundlePlace* best = nullptr;
  std::size_t fewest = 0;
  for (const wire::BundlePlace& bundle : group->places) {
    if (actor.spec.bundle >= 0 && bundle.index != static_cast<std::uint32_t>(actor.spec.bundle)) {
      continue;
    }
    const Node* node = turn_.SeeNode(bundle.node);
    if (node == nullptr || node->session.IsNil() || node->leaving) continue;
    Resources free = FreeIn(bundle, actor.spec.group);
    if (!wanted.FitsIn(free)) continue;
    free.Subtract(wanted);
    const auto& left = free.amounts();
    const auto kinds = static_cast<std::size_t>(
        std::count_if(left.begin(), left.end(), [](const auto& each) { return each.second > 0; }));
    if (best != nullptr && kinds >= fewest) continue;
    best = &bundle;
    fewest = kinds;
    if (kinds == 0) break;  // none leaves fewer
  }
  if (best == nullptr) return std::nullopt;
  wire::ActorPlaced place;
  place.node = best->node;
  place.group = actor.spec.group;
  place.attempt = group->attempt;
  place.bundle = static_cast<std::int32_t>(best->index);
  place.gpu_ids = GpusIn(*best, actor.spec.group, wanted.Get("GPU"));
  return place;
}

// Places an actor that holds nothing: on the node with the fewest actors, those with room for it
// first.
std::optional<wire::ActorPlaced> ActorPlacer::OnSomeNode(const Actor& actor) {
  const placement::Request request = PlaceRequestOf(actor.spec);
  const placement::NodeView* best = nullptr;
  const Scope scope = ScopeOfLaunch(turn_, actor.launch);
  // The first of its selectors that holds, before all else.
  const auto preference = [&](const placement::NodeView& view) {
    if (placement::Holds(request.labels, view.labels)) return std::size_t{0};
    std::size_t at = 0;
    while (at < request.fallbacks.size() && !placement::Holds(request.fallbacks[at], view.labels))
      ++at;
    return at + 1;
  };
  const auto rank = [&](const placement::NodeView& view) {
    return std::make_tuple(preference(view), !(view.id == request.node),
                           !request.bundles[0].FitsIn(view.free), actors_on_[view.id]);
  };
  for (const placement::Host* host : scope->in_place_order()) {
    const placement::NodeView& view = host->view;
    const bool excluded =
        (!request.node.IsNil() && !request.node_soft && view.id != request.node) ||
        preference(view) > request.fallbacks.size();
    if (excluded || !view.closed.empty() || !request.bundles[0].FitsIn(view.total)) continue;
    if (best == nullptr || rank(view) < rank(*best)) best = &view;
  }
  if (best == nullptr) return std::nullopt;
  wire::ActorPlaced place;
  place.node = best->id;
  if (const Launch* launch = turn_.FindLaunch(actor.launch)) {
    place.group = launch->group;
    place.attempt = launch->attempt;
  }
  return place;
}

}  // namespace troupe::head
