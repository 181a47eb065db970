#include "head/core/placed/share_places.h"

#include <set>
#include <utility>

#include "head/core/machine/wire_convert.h"
#include "head/core/placed/views.h"

namespace troupe::head {
namespace {

constexpr std::size_t kHoldersNamed = 5;

std::string Whose(std::int32_t rank) {
  return rank < 0 ? "current().run on all ranks" : "a run on rank " + std::to_string(rank);
}

const placement::NodeView* ViewOn(const std::vector<placement::NodeView>& views,
                                  const NodeId& node) {
  for (const placement::NodeView& view : views) {
    if (view.id == node) return &view;
  }
  return nullptr;
}

std::string HolderName(Turn& turn, const Group& group) {
  if (group.spec.shares) return Whose(group.spec.share_rank);
  const Actor* actor = turn.FindActor(group.spec.actor);
  if (actor != nullptr) {
    const std::string& name = actor->spec.name.empty() ? actor->spec.class_name : actor->spec.name;
    return "actor " + name + " (" + actor->spec.actor.Short() + ")";
  }
  return "placement group " +
         (group.spec.name.empty() ? group.spec.group.Short() : "'" + group.spec.name + "'");
}

}  // namespace

std::optional<std::vector<wire::BundlePlace>> SharePlaces(
    Turn& turn, const Group& shares, const std::vector<placement::NodeView>& views) {
  const Launch* launch = turn.FindLaunch(shares.spec.launch);
  if (launch == nullptr || launch->epoch != shares.spec.epoch) return std::nullopt;
  std::vector<wire::BundlePlace> places;
  for (const wire::Bundle& bundle : shares.spec.bundles) {
    if (bundle.index >= launch->nodes.size()) return std::nullopt;
    const placement::NodeView* view = ViewOn(views, launch->nodes[bundle.index]);
    const bool fits =
        view != nullptr && view->closed.empty() && FromWire(bundle.resources).FitsIn(view->free);
    if (!fits) return std::nullopt;
    wire::BundlePlace place;
    place.index = bundle.index;
    place.node = view->id;
    place.resources = bundle.resources;
    places.push_back(std::move(place));
  }
  return places;
}

std::string SharesWaitingFor(Turn& turn, const Group& shares) {
  const Launch* launch = turn.FindLaunch(shares.spec.launch);
  const Group* parent = turn.FindGroup(shares.spec.parent);
  const auto views =
      parent == nullptr ? std::vector<placement::NodeView>{} : GroupView(turn, *parent);
  std::string text;
  for (const wire::Bundle& bundle : shares.spec.bundles) {
    if (launch == nullptr || bundle.index >= launch->nodes.size()) continue;
    const NodeId& node = launch->nodes[bundle.index];
    const placement::NodeView* view = ViewOn(views, node);
    const Resources wanted = FromWire(bundle.resources);
    const bool fits = view != nullptr && view->closed.empty() && wanted.FitsIn(view->free);
    if (fits) continue;
    text += (text.empty() ? "" : "; ") + wanted.Text() + " on " + turn.NodeName(node) + ": ";
    if (view == nullptr) {
      text += "the node is lost";
    } else {
      text += view->closed.empty() ? view->free.Text() + " free" : view->closed;
    }
  }
  return text;
}

std::string HoldersIn(Turn& turn, const Group& parent) {
  std::set<GroupId> holding;
  for (const wire::BundlePlace& place : parent.places) {
    const Node* node = turn.SeeNode(place.node);
    if (node == nullptr) continue;
    for (const auto& [lease, held] : node->holdings) {
      if (held.parent == parent.spec.group) holding.insert(lease.first);
    }
  }
  std::string text;
  std::size_t named = 0;
  std::size_t ending = 0;
  for (const GroupId& id : holding) {
    const Group* group = turn.FindGroup(id);
    if (group == nullptr || group->places.empty()) {
      ++ending;
    } else if (++named <= kHoldersNamed) {
      Resources amount;
      for (const wire::BundlePlace& place : group->places) amount.Add(FromWire(place.resources));
      text += (text.empty() ? "" : ", ") + HolderName(turn, *group) + " " + amount.Text();
    }
  }
  if (named > kHoldersNamed) text += " and " + std::to_string(named - kHoldersNamed) + " more";
  if (ending > 0) {
    text += (text.empty() ? "" : ", ") + std::to_string(ending) + " that " +
            (ending == 1 ? "is" : "are") + " ending";
  }
  return text;
}

}  // namespace troupe::head
