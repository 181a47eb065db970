#include "head/core/schedule.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "head/core/actors.h"
#include "head/core/convert.h"
#include "head/core/groups.h"
#include "head/core/preempt.h"
#include "head/core/runs.h"
#include "head/core/shares.h"
#include "head/core/views.h"
#include "placement/queue.h"

namespace troupe::head {
namespace {

using placement::NodeView;

// One place per bundle; a gang's ranks on one node are one bundle.
std::vector<wire::BundlePlace> PlacesOf(const Group& group, const placement::Request& request,
                                        const placement::Plan& plan) {
  std::vector<wire::BundlePlace> places;
  if (group.spec.gang) {
    for (const placement::GangPart& part : placement::GangOf(plan).parts) {
      wire::BundlePlace place;
      place.index = static_cast<std::uint32_t>(places.size());
      place.node = part.node;
      place.ranks = part.count;
      place.resources = ToWire(request.bundles[0].Times(part.count));
      places.push_back(std::move(place));
    }
    return places;
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    wire::BundlePlace place;
    place.index = group.spec.bundles[i].index;
    place.node = plan.nodes[i];
    place.resources = group.spec.bundles[i].resources;
    places.push_back(std::move(place));
  }
  return places;
}

class Queue {
 public:
  explicit Queue(Turn& turn) : turn_(turn), pass_(ClusterOf(turn)) {}

  void Try(Group& group) {
    const Actor* actor = turn_.FindActor(group.spec.actor);
    if (actor != nullptr && actor->recreate_at > turn_.now) return;
    const bool ready = group.retry_at <= turn_.now;
    const placement::Request request = RequestOf(turn_, group.spec);
    if (ready && group.spec.parent.IsNil() && MakesRoom(group, request)) return;
    const auto plan = group.spec.parent.IsNil() ? pass_.Try(request, ready) : InParent(group, request, ready);
    if (plan) StartAttempt(turn_, group, PlacesOf(group, request, *plan));
  }

  /// Whom to end, and for whom: when the pass is over.
  const std::vector<std::pair<GroupId, GroupId>>& victims() const { return victims_; }

 private:
  // By policy the first that must wait ends others, and keeps the place it will have then.
  bool MakesRoom(const Group& group, const placement::Request& request) {
    if (turn_.options.preemption == Preemption::kNever || pass_.keeps()) return false;
    if (!reservations_) reservations_ = TopLevelReservations(turn_);
    const auto decision = placement::WhomToPreempt(turn_.state.cluster, request, group.spec.priority, *reservations_);
    if (!decision || decision->fits_now) return false;
    for (const GroupId& victim : decision->victims) victims_.emplace_back(victim, group.spec.group);
    pass_.KeepPlan(request, decision->plan);
    return true;
  }

  std::optional<placement::Plan> InParent(Group& group, const placement::Request& request, bool ready) {
    const Group* parent = turn_.FindGroup(group.spec.parent);
    if (!ready || parent == nullptr || parent->state != wire::GroupState::kCreated) return std::nullopt;
    auto& inner = inner_[group.spec.parent];
    if (group.spec.shares) {
      if (auto places = SharePlaces(turn_, group, GroupView(turn_, *parent))) {
        StartAttempt(turn_, group, std::move(*places));
        inner = nullptr;
      }
      return std::nullopt;
    }
    if (inner == nullptr) inner = std::make_unique<Inner>(GroupView(turn_, *parent));
    return inner->pass.Try(request);
  }

  // What is inside one group, as this pass goes on.
  struct Inner {
    explicit Inner(const std::vector<NodeView>& views) : cluster(views), pass(cluster, false) {}
    placement::ClusterIndex cluster;
    placement::Pass pass;
  };

  Turn& turn_;
  placement::Pass pass_;
  std::optional<std::vector<placement::Running>> reservations_;
  std::vector<std::pair<GroupId, GroupId>> victims_;
  std::map<GroupId, std::unique_ptr<Inner>> inner_;
};

}  // namespace

void Schedule(Turn& turn) {
  if (!turn.state.dirty) return;
  turn.state.dirty = false;
  CountNodesOfRuns(turn);
  const auto waiting = turn.state.waiting_groups;
  std::vector<std::pair<GroupId, GroupId>> victims;
  if (!waiting.empty()) {
    Queue queue(turn);
    for (const auto& [less, order, id] : waiting) queue.Try(*turn.FindGroup(id));
    victims = queue.victims();
  }
  for (const auto& [victim, by] : victims) Preempt(turn, victim, by);
  PlaceActors(turn);
}

}  // namespace troupe::head
