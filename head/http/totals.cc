#include "head/http/totals.h"

#include <algorithm>
#include <utility>

#include "head/core/nodes/node_views.h"
#include "head/core/placed/former_lives.h"
#include "head/http/lists.h"

namespace troupe::head {
namespace {

using Table = CountCursor::Table;

// The kinds that the metrics name.
constexpr char kActorKind[] = "actor", kLaunchKind[] = "launch", kGroupKind[] = "placement_group";

class Counter {
 public:
  Counter(Turn& turn, CountCursor* cursor, Totals* totals)
      : t_(turn), cursor_(*cursor), totals_(*totals) {}

  /// Counts rows of `rows` from the cursor on, then turns to the next table at the end of this one.
  template <class Id, class Row>
  void Go(const std::map<Id, Row>& rows) {
    auto row = cursor_.begun ? rows.upper_bound(Id(cursor_.after)) : rows.begin();
    for (; row != rows.end() && left_ > 0; ++row) {
      Spend(1);
      Count(row->second);
      cursor_.after = row->first;
      cursor_.begun = true;
    }
    if (row != rows.end()) return;
    cursor_.table = static_cast<Table>(static_cast<int>(cursor_.table) + 1);
    cursor_.begun = false;
  }
  /// Copies series of programs from the cursor on.
  void Go(const ProgramMetrics::Families& families) {
    auto family = families.lower_bound(cursor_.family);
    for (; family != families.end() && left_ > 0; ++family) {
      const bool again = cursor_.in_family && family->first == cursor_.family;
      if (!again) Begin(*family);
      ProgramMetrics::Family& to = totals_.programs[family->first];
      const auto& series = family->second.series;
      auto each = again ? series.upper_bound(cursor_.series) : series.begin();
      for (; each != series.end() && left_ > 0; ++each) {
        Spend(1);
        to.series.insert(to.series.end(), *each);
        cursor_.series = each->first;
      }
      if (each != series.end()) return;
    }
    if (family != families.end()) {
      cursor_.family = family->first;
      cursor_.in_family = false;
      return;
    }
    cursor_.table = Table::kEnd;
  }
  bool spent() const { return left_ == 0; }

 private:
  /// Counts work of about so many rows.
  void Spend(std::size_t rows) { left_ -= std::min(left_, rows); }
  void Begin(const ProgramMetrics::Families::value_type& family) {
    Spend(1);
    cursor_.family = family.first;
    cursor_.in_family = true;
    cursor_.series.clear();
    ProgramMetrics::Family& to = totals_.programs[family.first];
    to.kind = family.second.kind;
    to.help = family.second.help;
    to.bounds = family.second.bounds;
  }
  /// Counts the resources that placement groups of programs hold, and nobody inside uses.
  void CountReserved(const Node& node) {
    Resources reserved, used_inside;
    for (const auto& [lease, holding] : node.holdings) {
      if (IsProgramsGroup(lease.first)) reserved.Add(holding.amount);
      if (IsProgramsGroup(holding.parent)) used_inside.Add(holding.takes());
    }
    reserved.Subtract(used_inside);
    for (const auto& [name, amount] : reserved.amounts())
      totals_.resources[name].reserved += amount;
  }
  bool IsProgramsGroup(const GroupId& id) const {
    const auto group = id.IsNil() ? t_.state.groups.end() : t_.state.groups.find(id);
    return group != t_.state.groups.end() && IsListed(group->second);
  }
  void CountGpus(const Group& group) {
    if (!group.live()) return;
    for (const wire::BundlePlace& place : group.places) {
      for (const std::uint32_t gpu : place.gpu_ids) {
        // A group inside another one says more of who uses the device.
        GpuOwner& owner = totals_.gpu_owners[{place.node, gpu}];
        if (!group.spec.parent.IsNil() || owner.launch.IsNil()) owner = OwnerOf(group);
      }
    }
  }
  GpuOwner OwnerOf(const Group& group) const {
    GpuOwner owner;
    owner.user = group.spec.user;
    owner.launch = group.spec.launch;
    if (const auto actor = t_.state.actors.find(group.spec.actor); actor != t_.state.actors.end())
      owner.launch = actor->second.launch;
    const auto launch = t_.state.launches.find(owner.launch);
    if (owner.user.empty() && launch != t_.state.launches.end())
      owner.user = UserOf(launch->second);
    return owner;
  }
  void Count(const Node& node) {
    ++totals_.nodes[StateOf(node)];
    if (node.dead) return;
    Spend(node.holdings.size() + node.info.devices.size());
    CountReserved(node);
    totals_.node_figures.push_back({node.id, node.name, node.info.listen_host, node.info.host,
                                    node.measures, node.measures_before,
                                    Seconds(node.measured - node.measured_before),
                                    node.info.devices});
    const auto add = [this](const Resources& some, std::uint64_t ResourceTotals::* to) {
      for (const auto& [name, amount] : some.amounts()) totals_.resources[name].*to += amount;
    };
    add(node.total, &ResourceTotals::total);
    add(FreeOf(node), &ResourceTotals::free);
    add(node.missing, &ResourceTotals::missing);
  }
  void Count(const Actor& actor) {
    ++totals_.actors[OutOfReach(t_, actor) ? wire::ActorState::kUnavailable : actor.state];
    if (!actor.live() || !IsProgramsGroup(actor.place.group)) return;
    // Nodes were counted before, so that what is reserved is known.
    for (const wire::Resource& each : actor.spec.run_resources) {
      std::uint64_t& reserved = totals_.resources[each.name].reserved;
      reserved -= std::min(reserved, each.ten_thousandths);
    }
  }
  void Count(const Launch& launch) {
    ++totals_.launches[launch.phase];
    if (!IsJob(t_.state, launch)) return;
    const bool open = launch.open();
    ++totals_.jobs[JobStateOf(launch.phase, open ? wire::Outcome::kNone : launch.marker->outcome,
                              open ? launch.last_failure : launch.marker->failure)];
  }
  void Count(const Group& group) {
    const bool of_actor = !group.spec.actor.IsNil();
    if (!of_actor && !group.spec.gang) ++totals_.placement_groups[group.state];
    CountGpus(group);
    if (!group.waiting()) return;
    QueueTotals& queue = totals_.queue[of_actor          ? kActorKind
                                       : group.spec.gang ? kLaunchKind
                                                         : kGroupKind];
    ++queue.waiting;
    if (queue.oldest_us == 0 || group.waits_since_us < queue.oldest_us) {
      queue.oldest_us = group.waits_since_us;
    }
  }

  Turn& t_;
  CountCursor& cursor_;
  Totals& totals_;
  std::size_t left_ = kRowsPerSlice;
};

}  // namespace

bool CountSome(Turn& turn, CountCursor* cursor, Totals* totals) {
  Counter counter(turn, cursor, totals);
  while (cursor->table != Table::kEnd && !counter.spent()) {
    switch (cursor->table) {
      case Table::kNodes:
        counter.Go(turn.state.nodes);
        break;
      case Table::kActors:
        counter.Go(turn.state.actors);
        break;
      case Table::kLaunches:
        counter.Go(turn.state.launches);
        break;
      case Table::kGroups:
        counter.Go(turn.state.groups);
        break;
      case Table::kPrograms:
        turn.state.program_metrics.Expire(turn.now);
        counter.Go(turn.state.program_metrics.families());
        break;
      case Table::kEnd:
        break;
    }
  }
  if (cursor->table != Table::kEnd) return false;
  totals->cluster = turn.options.cluster.Hex();
  totals->address = turn.options.address;
  totals->version = turn.options.version;
  totals->incarnation = turn.state.incarnation;
  totals->up = turn.now - turn.state.started;
  totals->wall_us = turn.wall_us;
  totals->read_only = turn.state.read_only;
  return true;
}

}  // namespace troupe::head
