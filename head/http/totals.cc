#include "head/http/totals.h"

#include <utility>

#include "head/core/actor_views.h"
#include "head/core/status.h"
#include "head/core/views.h"

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
    for (; row != rows.end() && left_ > 0; ++row, --left_) {
      Count(row->second);
      cursor_.after = row->first;
      cursor_.begun = true;
    }
    if (row != rows.end()) return;
    cursor_.table = static_cast<Table>(static_cast<int>(cursor_.table) + 1);
    cursor_.begun = false;
  }
  bool spent() const { return left_ == 0; }

 private:
  void Count(const Node& node) {
    ++totals_.nodes[StateOf(node)];
    if (node.dead) return;
    const auto add = [this](const Resources& some, std::uint64_t ResourceTotals::* to) {
      for (const auto& [name, amount] : some.amounts()) totals_.resources[name].*to += amount;
    };
    add(node.total, &ResourceTotals::total);
    add(FreeOf(node), &ResourceTotals::free);
    add(node.missing, &ResourceTotals::missing);
  }
  void Count(const Actor& actor) {
    ++totals_.actors[OutOfReach(t_, actor) ? wire::ActorState::kUnavailable : actor.state];
  }
  void Count(const Launch& launch) { ++totals_.launches[launch.phase]; }
  void Count(const Group& group) {
    const bool of_actor = !group.spec.actor.IsNil();
    if (!of_actor && !group.spec.gang) ++totals_.placement_groups[group.state];
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
      case Table::kEnd:
        break;
    }
  }
  if (cursor->table != Table::kEnd) return false;
  totals->version = turn.options.version;
  totals->incarnation = turn.state.incarnation;
  totals->up = turn.now - turn.state.started;
  totals->wall_us = turn.wall_us;
  totals->read_only = turn.state.read_only;
  return true;
}

}  // namespace troupe::head
