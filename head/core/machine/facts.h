// Facts: what has happened in one room that rooms above follow up.
//
// A room names no room above it (head/core/README.md). It says what has happened by
// Turn::Happened, and follow_ups.h has who follows that up, in which order, before Happened
// returns: so the state may be another one afterwards, and a group, launch or actor may be gone. A
// fact lives for that call and refers to what it is about.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "head/core/machine/state.h"

namespace troupe::head::fact {

// Facts of nodes and of those who are there.

/// A node has joined, or is back, with what it holds and runs; `was_dead`: it was lost before.
struct NodeRegistered {
  const NodeId& node;
  bool was_dead = false;
  const wire::RegisterNode& report;
};
/// A node has said all that it had to say since it registered.
struct NodeSettled {
  const NodeId& node;
};
/// A node is lost, which is in the journal. `verdict`: its processes are known to be gone.
struct NodeLost {
  const NodeId& node;
  const std::string& why;
  bool verdict = false;
  const std::vector<GroupId>& groups;  // groups with something there of the node itself
  const std::vector<GroupId>& inside;  // and those that had something inside another group
};
/// A client or a process that owned things is gone for good.
struct OwnerGone {
  const OwnerId& owner;
  const std::string& why;
};
/// Watchers behind this worker's session may have missed what was pushed to them before.
struct WatchersBack {
  const SessionId& session;
};
/// A client's or an observer's session has ended, and watches nothing any more.
struct SessionEnded {};

// Facts of what is placed.

/// A pass over the queue begins, since something has changed.
struct PassBegins {};
/// A group has its places: its nodes hold them, and that is in the journal.
struct GroupPlaced {
  Group& group;
};
/// Nodes no longer hold the reservation of a launch that is on nodes.
struct GangLost {
  Launch& launch;
  const std::string& why;
};
/// The reservation for ranks that died has lost its places.
struct SpareLost {
  const Group& spare;
  const std::string& why;
};
/// A group that has, or was to get, places loses them; it waits for others afterwards.
struct PlacesLost {
  const GroupId& group;
  wire::FailureKind kind;
  const std::string& why;
};
/// A group ends; whoever lives in it does before.
struct GroupEnds {
  const GroupId& group;
  const std::string& why;
};
/// A launch that is on nodes is to make room for others.
struct EpochPreempted {
  Launch& launch;
  const std::string& why;
};

// Facts of launches.

/// A rank of a launch has ended, and its epoch goes on.
struct EpochGoesOn {
  Launch& launch;
};
/// The marker of a launch is written, and what it had is being given back.
struct LaunchEnded {
  Launch& launch;
};

}  // namespace troupe::head::fact

namespace troupe::head {

using Fact =
    std::variant<fact::NodeRegistered, fact::NodeSettled, fact::NodeLost, fact::OwnerGone,
                 fact::WatchersBack, fact::SessionEnded, fact::PassBegins, fact::GroupPlaced,
                 fact::GangLost, fact::SpareLost, fact::PlacesLost, fact::GroupEnds,
                 fact::EpochPreempted, fact::EpochGoesOn, fact::LaunchEnded>;

class Turn;
/// Calls those that follow a fact up.
using FollowUp = void (*)(Turn& turn, const Fact& fact);

}  // namespace troupe::head
