// Lists of a cluster's nodes, actors, launches and groups, as the runtime's own messages describe
// them: made on the head's loop in slices, then read on the HTTP server's loop.
//
// View: the cluster, pure. Rows are in the order of their ids. A row that changes between two
// slices is as it is when its slice comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "head/core/head_core.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

inline constexpr std::size_t kListRowsPerSlice = 64;
/// The scope of the values that name jobs which were deleted, by the ids of their launches
/// (troupe/job_submission).
inline constexpr char kDeletedJobs[] = "jobs";

struct NodeRow {
  wire::NodeInfo info;
};
struct ActorRow {
  wire::ActorInfo info;
};
struct LaunchRow {
  wire::LaunchInfo info;
  std::string job;   // the id of the job that it is; empty: it is none
  std::string user;  // user of the job
};
struct GroupRow {
  wire::GroupInfo info;
};
struct EventRow {
  wire::ClusterEvent event;
};

template <class Row>
struct ListView {
  std::vector<Row> rows;
  std::uint64_t incarnation = 0;  // the head's
  std::uint64_t wall_us = 0;
};

NodeRow RowOf(Turn& turn, const Node& node);
ActorRow RowOf(Turn& turn, const Actor& actor);
LaunchRow RowOf(Turn& turn, const Launch& launch);
/// Returns the user who submitted a job; empty: it is none, or does not say.
std::string UserOf(const Launch& launch);
/// True: it was submitted as a job that was not deleted.
bool IsJob(const State& state, const Launch& launch);
/// The state of a job as people and Ray's client know it: QUEUED, STARTING, RUNNING, SUCCEEDED,
/// FAILED or STOPPED.
const char* JobStateOf(wire::LaunchState state, wire::Outcome outcome,
                       const wire::Failure& failure);
GroupRow RowOf(Turn& turn, const Group& group);
/// False: who looks is not told of it.
inline bool IsListed(const Node&) { return true; }
inline bool IsListed(const Actor&) { return true; }
inline bool IsListed(const Launch&) { return true; }
/// A group of a program's own; others are how actors and launches are placed.
inline bool IsListed(const Group& group) {
  return !group.spec.gang && !group.spec.shares && group.spec.actor.IsNil();
}

/// Makes a list of `table`, some rows a call; for one view.
template <class Row, class Id, class Entry>
class Lister {
 public:
  Lister(HeadCore& core, const Clock& clock, const std::map<Id, Entry> State::* table)
      : core_(core), clock_(clock), table_(table) {}

  /// True: the view is whole.
  bool operator()(ListView<Row>& view) {
    Turn turn = core_.TurnToLook(clock_.Now(), clock_.WallTimeUs());
    if (listing_) {
      turn.listing = std::move(listing_);
    } else {
      turn.BeginListing();
    }
    const std::map<Id, Entry>& table = turn.state.*table_;
    auto entry = after_ ? table.upper_bound(*after_) : table.begin();
    for (std::size_t i = 0; i < kListRowsPerSlice && entry != table.end(); ++i, ++entry) {
      if (IsListed(entry->second)) view.rows.push_back(RowOf(turn, entry->second));
      after_ = entry->first;
    }
    listing_ = std::move(turn.listing);
    view.incarnation = turn.state.incarnation;
    view.wall_us = turn.wall_us;
    return entry == table.end();
  }

 private:
  HeadCore& core_;
  const Clock& clock_;
  const std::map<Id, Entry> State::* table_;
  std::optional<Id> after_;
  std::optional<Listing> listing_;
};

}  // namespace troupe::head
