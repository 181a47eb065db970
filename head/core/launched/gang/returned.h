// Ranks that wait in a group for one that has returned: it can never come, so the launch fails.
//
//   a rank returned, others run ──> PeersReturned to each node that has ranks which run
//   RankAwaits of one that waits ──> AskBegun to each rank named, by its worker ──> RankBegun
//     one of them has begun fewer operations, and begins no more ──> the launch fails
//     all have begun as many, may begin more, or say nothing ──> nothing; who waits says it again
//
// A1 A node is told once of each rank that returned, about a second later and together with the
//    others of that second: a launch whose ranks end together costs nothing.
// A2 A rank says so that runs and is in the group that there is now. Its worker speaks for it. Of
//    those that it names, only ranks count that have returned.
// A3 Nobody's word fails a launch: whoever has returned is asked itself, after that word. What it
//    has begun is final, unless it says that more may follow.
// A4 The launch fails when one of them has begun fewer operations than the one waited in; of a
//    receive from whichever rank sends, when all together have.
// A5 One question at a time for a launch, and none while its group is formed anew or it ends. Who
//    waits in the same operation meanwhile is named with the first; any other word is forgotten.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

/// This rank has returned, that is in the journal, and the launch goes on.
void NoteReturned(Turn& turn, Launch& launch, std::uint32_t rank);
/// A node is back: which ranks have returned.
void ResumeReturnedOn(Turn& turn, const Launch& launch, const NodeId& node);
void OnTellReturnedTimer(Turn& turn, const LaunchId& id);

void OnRankAwaits(Turn& turn, Node& node, const wire::RankAwaits& message);
/// RankBegun, where it answers a question of this file.
void OnReturnedAnswer(Turn& turn, Node& node, const wire::RankBegun& message);
void OnAwaitedTimer(Turn& turn, const LaunchId& id);

}  // namespace troupe::head
