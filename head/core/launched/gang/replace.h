// Other processes in the places of ranks that died, of launches with on_rank_death="replace" (R6 in
// regroup.h).
//
//   a rank died ──its node is there──> RankReplaced: there, in the launch's own reservation
//               ──else──> a reservation for it alone is queued ──placed──> RankReplaced: there
//               ──none within reform_ms──> the launch fails, naming what was missing
//
// RP1 A process takes the place of a rank that died, and of no other; it is another life of the
//     rank, and what a former life says is not its word.
// RP2 No group is formed while the place of a rank that died is empty: the group keeps its size.
// RP3 No crash loop: the third process in a row that died before it was in a group, and the 17th of
//     a rank altogether, is the failure of the launch.
// RP4 A process lives in the launch's own reservation, or in one that was made for it; that one
//     ends with the attempt.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Returns true if the launch runs, and another process comes in the place of each rank that dies.
bool Replaces(const Launch& launch);
/// Fills the empty places of ranks that died, as far as that is possible now, and queues
/// reservations for the others.
void FillPlaces(Turn& turn, Launch& launch);
/// Returns true if a rank that died has no process in its place yet.
bool AnyPlaceIsEmpty(const Launch& launch);
/// Orders the node to start what was decided since that epoch of the group.
void SendReplacements(Turn& turn, const Launch& launch, const NodeId& node, std::uint64_t since);

/// The failure of a launch in which this could not be done in time: who, and what was missing.
wire::Failure PlaceMissing(Turn& turn, const Launch& launch);

}  // namespace troupe::head
