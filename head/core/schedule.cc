#include "head/core/schedule.h"

#include <set>
#include <tuple>
#include <utility>

#include "head/core/actors.h"
#include "head/core/convert.h"
#include "head/core/groups.h"
#include "head/core/runs.h"
#include "head/core/shares.h"
#include "head/core/views.h"
#include "placement/packer.h"

namespace troupe::head {
namespace {

using placement::NodeView;

// One place per bundle; a gang's ranks on one node are one bundle.
std::vector<wire::BundlePlace> PlacesOf(const Group& group, const placement::Request& request,
                                        const placement::Plan& plan,
                                        const std::vector<NodeView>& views) {
  std::vector<wire::BundlePlace> places;
  if (group.spec.gang) {
    for (const placement::GangPart& part : placement::GangOf(views, plan).parts) {
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

void Take(std::vector<NodeView>& views, const NodeId& node, const Resources& amount) {
  for (NodeView& view : views) {
    if (view.id == node) view.free.Subtract(amount);
  }
}

// What the first waiting request will use is out of reach of those behind it.
void Shadow(std::vector<NodeView>& views, const placement::Request& request) {
  const auto plan = placement::PackOnTotals(views, request);
  if (!plan) return;
  for (std::size_t i = 0; i < plan->nodes.size(); ++i) {
    Take(views, plan->nodes[i], request.bundles[i]);
  }
}

// A request's shape: what failed once in a pass fails again.
using Shape = std::tuple<GroupId, wire::Strategy, std::string, NodeId, std::vector<Resources>>;

class Pass {
 public:
  explicit Pass(Turn& turn) : turn_(turn), cluster_(ClusterView(turn)) {}

  void Try(Group& group) {
    if (group.retry_at > turn_.now) return;
    const Actor* actor = turn_.FindActor(group.spec.actor);
    if (actor != nullptr && actor->recreate_at > turn_.now) return;
    const placement::Request request = RequestOf(turn_, group.spec);
    const bool top = group.spec.parent.IsNil();
    std::vector<NodeView> inner;
    if (!top) {
      const Group* parent = turn_.FindGroup(group.spec.parent);
      if (parent == nullptr || parent->state != wire::GroupState::kCreated) return;
      inner = GroupView(turn_, *parent);
    }
    if (group.spec.shares) {
      if (auto places = SharePlaces(turn_, group, inner)) StartAttempt(turn_, group, std::move(*places));
      return;
    }
    std::vector<NodeView>& views = top ? cluster_ : inner;
    const Shape shape{group.spec.parent, group.spec.strategy, group.spec.gpu_type, group.spec.node,
                      request.bundles};
    if (failed_.count(shape) > 0) return;
    const auto plan = placement::Pack(views, request);
    if (!plan) {
      failed_.insert(shape);
      if (top && !shadowed_) Shadow(cluster_, request);
      shadowed_ = shadowed_ || top;
      return;
    }
    std::vector<wire::BundlePlace> places = PlacesOf(group, request, *plan, views);
    for (const wire::BundlePlace& place : places) Take(views, place.node, FromWire(place.resources));
    StartAttempt(turn_, group, std::move(places));
  }

 private:
  Turn& turn_;
  std::vector<NodeView> cluster_;
  std::set<Shape> failed_;
  bool shadowed_ = false;
};

}  // namespace

void Schedule(Turn& turn) {
  if (!turn.state.dirty) return;
  turn.state.dirty = false;
  CountNodesOfRuns(turn);
  const auto waiting = turn.state.waiting_groups;
  if (!waiting.empty()) {
    Pass pass(turn);
    for (const auto& [order, id] : waiting) pass.Try(*turn.FindGroup(id));
  }
  PlaceActors(turn);
}

}  // namespace troupe::head
