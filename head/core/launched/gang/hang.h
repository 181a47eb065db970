// Ranks that others wait for too long (LaunchSpec::hang_ms): the word of one that waits, the
// question to those that it names, and the verdict.
//
//   RanksLate of a rank that waits ──> AskBegun to each that is late, by its worker ──> RankBegun
//     it says nothing, or has begun fewer operations and waits in none ──> its death (verdict.h)
//     it has come, or waits itself, or its worker is away ──> nothing; who waits says so again
//
// H1 A rank says so that runs and is in the group that there is now, of other ranks of its launch
//    that run; and only once it has waited for hang_ms. Its worker speaks for it.
// H2 Nobody's word ends a rank: it is asked itself, after that word. One that has come to the
//    operation by then, or that waits in a collective itself, lives.
// H3 Whoever says nothing is held to be stopped, by the word of its own worker alone: a node that
//    is away says nothing of its ranks, and their ends are the node's.
// H4 Of those that were asked, whoever says nothing ends; where all speak, those that have begun
//    the fewest operations. The others may wait for these.
// H5 One question at a time for a launch, and none while its group is formed anew or it ends: what
//    is said meanwhile is forgotten.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Ranks are named as they are in the group that there is now: the launch's rank, or one that there
/// is not.
std::uint32_t LaunchRank(const Launch& launch, std::uint32_t group_rank);

void OnRanksLate(Turn& turn, Node& node, const wire::RanksLate& message);
void OnRankBegun(Turn& turn, Node& node, const wire::RankBegun& message);
void OnHangTimer(Turn& turn, const LaunchId& id);

}  // namespace troupe::head
