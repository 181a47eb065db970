#include "head/core/placed/schedule.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "head/core/machine/wire_convert.h"
#include "head/core/placed/actor_views.h"
#include "head/core/placed/actors.h"
#include "head/core/placed/former_lives.h"
#include "head/core/placed/gang_shape.h"
#include "head/core/placed/groups.h"
#include "head/core/placed/people/fair_queue.h"
#include "head/core/placed/people/quotas.h"
#include "head/core/placed/predecessors.h"
#include "head/core/placed/preempt.h"
#include "head/core/placed/room_notices.h"
#include "head/core/placed/share_places.h"
#include "head/core/placed/views.h"
#include "placement/queue.h"

namespace troupe::head {
namespace {

using placement::NodeView;

// Returns a place per bundle; a gang's ranks on one node are one bundle.
std::vector<wire::BundlePlace> PlacesOf(const Turn& turn, const Group& group,
                                        const placement::Request& request,
                                        const placement::Plan& plan) {
  std::vector<wire::BundlePlace> places;
  if (group.spec.gang) {
    const GangShape shape = GangShapeOf(turn.state.launches.at(group.spec.launch).spec);
    std::size_t bundle = 0;  // the first one of a part, whose bundles are equal
    for (const placement::GangPart& part : placement::GangOf(plan).parts) {
      const std::uint32_t ranks = shape.ranks_each + (bundle < shape.larger ? 1 : 0);
      wire::BundlePlace place;
      place.index = static_cast<std::uint32_t>(places.size());
      place.node = part.node;
      place.ranks = part.count * ranks;
      place.resources = ToWire(request.bundles[bundle].Times(part.count));
      places.push_back(std::move(place));
      bundle += part.count;
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

// Interval after which the keeper's planned place is computed anew.
constexpr std::chrono::seconds kPlanStands{1};

class Queue {
 public:
  explicit Queue(Turn& turn) : turn_(turn), memory_(turn.state.queue), pass_(ClusterOf(turn)) {
    const Group* keeper = turn.FindGroup(memory_.keeper);
    const bool keeper_left = !memory_.keeper.IsNil() && (keeper == nullptr || !keeper->waiting());
    const std::uint64_t growth = turn.state.cluster.growth();
    // Possible victims, and their beneficiaries, change with all that runs.
    const bool news =
        growth != memory_.growth || keeper_left || std::exchange(turn.state.users.freed, false) ||
        turn.options.preemption != Preemption::kNever;
    if (news) ++memory_.round;
    memory_.growth = growth;
  }

  /// Returns the waiting groups to look at. The others would find the state they found before.
  std::vector<QueueKey> Whom() {
    const bool again = std::exchange(memory_.gone_over, memory_.round) == memory_.round;
    if (again && memory_.keep_due > turn_.now) return {memory_.open.begin(), memory_.open.end()};
    memory_.keep_due = Instant::max();
    memory_.open.clear();
    return {turn_.state.waiting_groups.begin(), turn_.state.waiting_groups.end()};
  }

  void Try(Group& group) {
    const bool pauses = Pauses(group);
    const bool ready = !pauses && group.retry_at <= turn_.now;
    if (!pauses && !Admits(group)) return;
    if (!pauses) TryInCluster(group, ready);
    if (!group.waiting()) return;
    if (ready && group.failed_in == memory_.round && group.spec.group != keeper_) {
      memory_.open.erase(group.key());
    } else {
      memory_.open.insert(group.key());
    }
  }

  void TryInside(Group& group) {
    if (Pauses(group)) return;
    const bool newcomer = group.waits_since == Instant{};
    if (newcomer) group.waits_since = turn_.now;
    const placement::Request request = RequestOf(turn_, group.spec);
    const auto plan = InParent(group, request, group.retry_at <= turn_.now);
    if (plan) {
      StartAttempt(turn_, group, PlacesOf(turn_, group, request, *plan));
    } else if (newcomer && group.waiting()) {
      NoteRoomWanted(turn_, group);
    }
  }

  /// The groups to end, and for whom: valid when the pass is over.
  const std::vector<std::pair<GroupId, GroupId>>& victims() const { return victims_; }

  /// Behind the last one. What another one kept until now, somebody may use who found no room.
  void End() {
    if (keeper_ == memory_.keeper && !moved_) return;
    if (!memory_.keeper.IsNil()) {
      ++memory_.round;
      turn_.state.dirty = true;
    }
    memory_.keeper = keeper_;
  }

  static std::vector<GroupId> IdsOf(const std::set<QueueKey>& keys) {
    std::vector<GroupId> ids;
    ids.reserve(keys.size());
    for (const QueueKey& key : keys) ids.push_back(std::get<GroupId>(key));
    return ids;
  }

 private:
  bool Pauses(const Group& group) const {
    const Actor* actor = group.spec.actor.IsNil() ? nullptr : turn_.FindActor(group.spec.actor);
    return (actor != nullptr && WaitsForFormerLife(turn_, *actor)) ||
           WaitsForLaunches(turn_, group);
  }

  // Returns true if its user's quota admits the group. A group that is not admitted is looked at
  // again when the user holds less, or the quota is another one (Users::freed); in every pass only
  // where others leave something for it.
  bool Admits(Group& group) {
    const Duration waited =
        group.waits_since == Instant{} ? WaitedBefore(group) : turn_.now - group.waits_since;
    const bool keeps = waited >= turn_.options.keep_after;
    if (quotas_.Admits(turn_, group, keeps)) return true;
    if (group.waits_since == Instant{}) group.waits_since = turn_.now - waited;
    if (keeps) memory_.open.insert(group.key());
    if (!keeps) memory_.open.erase(group.key());
    return false;
  }

  void TryInCluster(Group& group, bool ready) {
    const bool newcomer = group.waits_since == Instant{};
    if (newcomer) group.waits_since = turn_.now - WaitedBefore(group);
    const bool try_now = ready && group.failed_in != memory_.round;
    const bool try_keep = !pass_.keeps() && group.aheadless_in != memory_.round;
    if (!try_now && !try_keep) return;
    const placement::Request request = RequestOf(turn_, group.spec);
    if (ready && MakesRoom(group, request)) return;
    if (try_now) {
      if (const auto plan = pass_.Place(request)) {
        StartAttempt(turn_, group, PlacesOf(turn_, group, request, *plan));
        return;
      }
      group.failed_in = memory_.round;
      if (newcomer) NoteRoomWanted(turn_, group);
    }
    if (try_keep) Keep(group, request);
  }

  // Before this head started, too: as long as matters (QT-4, FS-2), for clocks may have been set
  // meanwhile.
  Duration WaitedBefore(const Group& group) const {
    if (group.waits_since_us == 0 || group.waits_since_us >= turn_.wall_us) return Duration::zero();
    const auto most = std::chrono::duration_cast<std::chrono::microseconds>(
        std::max(turn_.options.keep_after, turn_.options.passed_over_max));
    return std::min(std::chrono::microseconds(turn_.wall_us - group.waits_since_us), most);
  }

  // The first that must wait keeps what it will need. The plan stands for a while: it costs a look
  // at all nodes.
  void Keep(Group& group, const placement::Request& request) {
    const bool pauses = group.retry_at > turn_.now;  // there was room for it
    if (!pauses && turn_.now - group.waits_since < turn_.options.keep_after) {
      memory_.keep_due = std::min(memory_.keep_due, group.waits_since + turn_.options.keep_after);
      return;
    }
    const bool same = group.spec.group == memory_.keeper;
    if (same && turn_.now - memory_.kept_at < kPlanStands && AllOpen(memory_.kept)) {
      pass_.KeepPlan(request, memory_.kept);
    } else {
      auto plan = pass_.Keep(request);
      if (!plan) {
        group.aheadless_in = memory_.round;
        return;
      }
      moved_ = !same || plan->nodes != memory_.kept.nodes;
      memory_.kept = *std::move(plan);
      memory_.kept_at = turn_.now;
    }
    keeper_ = group.spec.group;
  }

  bool AllOpen(const placement::Plan& plan) const {
    return std::all_of(plan.nodes.begin(), plan.nodes.end(), [this](const NodeId& id) {
      const placement::Host* host = turn_.state.cluster.Find(id);
      return host != nullptr && host->view.closed.empty();
    });
  }

  // By policy the first that must wait ends others, and keeps the place it will have then.
  bool MakesRoom(const Group& group, const placement::Request& request) {
    if (turn_.options.preemption == Preemption::kNever || pass_.keeps()) return false;
    if (!reservations_) reservations_ = TopLevelReservations(turn_);
    const auto decision =
        placement::WhomToPreempt(turn_.state.cluster, request, group.spec.priority, *reservations_);
    if (!decision || decision->fits_now) return false;
    for (const GroupId& victim : decision->victims) victims_.emplace_back(victim, group.spec.group);
    pass_.KeepPlan(request, decision->plan);
    return true;
  }

  std::optional<placement::Plan> InParent(Group& group, const placement::Request& request,
                                          bool ready) {
    const Group* parent = turn_.FindGroup(group.spec.parent);
    if (!ready || parent == nullptr || parent->state != wire::GroupState::kCreated)
      return std::nullopt;
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

  // The state inside one group, as this pass goes on.
  struct Inner {
    explicit Inner(const std::vector<NodeView>& views) : cluster(views), pass(cluster, false) {}
    placement::ClusterIndex cluster;
    placement::Pass pass;
  };

  Turn& turn_;
  QueueMemory& memory_;
  placement::Pass pass_;
  QuotaPass quotas_;
  GroupId keeper_;  // keeper of this pass
  bool moved_ = false;  // true if its place changed since the last pass
  std::optional<std::vector<placement::Running>> reservations_;
  std::vector<std::pair<GroupId, GroupId>> victims_;
  std::map<GroupId, std::unique_ptr<Inner>> inner_;
};

}  // namespace

void Schedule(Turn& turn) {
  if (!turn.state.dirty) return;
  turn.state.dirty = false;
  turn.Happened(fact::PassBegins{});
  std::vector<std::pair<GroupId, GroupId>> victims;
  if (!turn.state.waiting_groups.empty() || !turn.state.waiting_inside.empty()) {
    Queue queue(turn);
    FairQueue in_order(turn, queue.Whom());
    while (const auto id = in_order.Next()) queue.Try(*turn.FindGroup(*id));
    for (const GroupId& id : Queue::IdsOf(turn.state.waiting_inside))
      queue.TryInside(*turn.FindGroup(id));
    queue.End();
    victims = queue.victims();
  }
  for (const auto& [victim, by] : victims) Preempt(turn, victim, by);
  PlaceActors(turn);
  for (const ActorId& id : WhoMakesRoom(turn)) PushActor(turn, *turn.FindActor(id));
}

}  // namespace troupe::head
