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

#include "head/core/turn.h"

namespace troupe::head {

/// Fills the empty places of ranks that died, as far as that is possible now, and queues
/// reservations for the others.
void FillPlaces(Turn& turn, Launch& launch);
/// Returns true if a rank that died has no process in its place yet.
bool AnyPlaceIsEmpty(const Launch& launch);
/// Orders the node to start what was decided since that epoch of the group.
void SendReplacements(Turn& turn, const Launch& launch, const NodeId& node, std::uint64_t since);

/// A reservation for ranks that died has its places.
void OnSparePlaced(Turn& turn, const Group& spare);
/// Drops the reservation made for ranks that died.
void LoseSpare(Turn& turn, const Group& spare, const std::string& why);
/// The node starts nothing more of this attempt: what it should start is started elsewhere.
void OnAttemptEndedOn(Turn& turn, Node& node, const wire::EpochEnded& message);

/// The failure of a launch in which this could not be done in time: who, and what was missing.
wire::Failure PlaceMissing(Turn& turn, const Launch& launch);

}  // namespace troupe::head
