// The group directory: the ranks' group of a launch that goes on without ranks that died.
//
//   a rank died, the launch does not fail ──> the group's epoch rises ──> PeersLost to each node
//     that has ranks ──> GroupJoined of each ──> GroupReformed journaled ──> FormGroup to each
//
// The head sends one message per node and step, whatever the number of ranks; a node says who has
// come with each that comes, so that who is late makes nobody else late. The group's epoch is 1 and
// one more for each death (GroupEpochOf): the journal has it, so a head that was started again
// counts on.
//
// R1 A death (verdict.h) is no failure of its launch while enough ranks have not died: never one of
//    code that raised, never while the launch starts.
// R2 The group's epoch only grows, and the launch's does not with it.
// R3 A group is formed of all ranks that run, once all of them have come, and never of one that
//    died; it is formed once for an epoch, and all hear the same of it.
// R4 Who has not come when the time for it is over is a death: no re-form lasts for ever.
// R5 Success is when every rank has succeeded or died, and enough have not died.
// R6 Under `replace` the group keeps its size: another process takes the place of one that died,
//    or the launch fails (replace.h).
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// A rank of a launch that is not failing has ended: the next group, or the launch's success. The
/// end is in the journal.
void RegroupAfter(Turn& turn, Launch& launch);

/// Returns the failure of a dead rank for nodes and ranks, without the parts that only the marker
/// has room for.
wire::Failure DeathOf(const Launch& launch, std::size_t rank);

/// Room was made for ranks that died: others take their places, of the epoch that the group has
/// now.
void RefillPlaces(Turn& turn, Launch& launch);

void OnGroupJoined(Turn& turn, Node& node, const wire::GroupJoined& message);
/// A node is back: what it may not have heard.
void ResumeRegroupOn(Turn& turn, const Launch& launch, const NodeId& node);
void OnReformTimer(Turn& turn, const LaunchId& id);
/// After replay: groups that were not formed are waited for anew.
void ResumeRegroups(Turn& turn);

/// Returns true if the launch runs, and goes on without the ranks of a node that is lost: they are
/// known to have died.
bool GoesOnAfterDeaths(const Launch& launch);
/// Nodes no longer hold the reservation of a launch that is on nodes: its epoch fails, unless it
/// goes on after deaths.
void LoseGang(Turn& turn, Launch& launch, const std::string& why);

}  // namespace troupe::head
