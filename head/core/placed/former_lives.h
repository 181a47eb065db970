// Processes that may still run of actors that were lost without a verdict or told to end, and until
// when; what waits for their end: the actor's own next life (A2), and the next actor of that name
// (AN-4, actors.h).
//
//   its node is lost, and nobody knows what runs there --> until the first of
//     `recreate_after` the node's last sign of life: it has fenced itself by then;
//     its worker's end;
//     its return: what it then holds is told to end, and has when the node says so; what it does
//       not
//     hold has ended.
//   it is told to end: it was killed, nobody wants it, its owner or its group ended, its group lost
//     a part, others need the room --> until its node says it has.
// What is known to have ended is waited for no longer. The time counts on over restarts of the
// head, by the clock of the host's boot: a node that is not heard cannot have its fence put off,
// whether or not a head is there.
#pragma once

#include <cstdint>
#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Returns true if the actor's node was lost without a verdict: it may still run there. Until the
/// node is back, or `recreate_after` is over, nobody knows.
bool OutOfReach(Turn& turn, const Actor& actor);
/// When all that a node that was lost without a verdict ran has ended by itself.
Instant FencedAt(const Turn& turn, const Node& lost);
/// Returns true if a process that is no longer its actor's own may still run.
bool MayRun(const Turn& turn, const FormerLife& life);
/// Returns true if a pending actor must not start yet: the life before may still run, or another
/// actor that has or had its name.
bool WaitsForFormerLife(Turn& turn, const Actor& actor);
/// Says, for people, what such an actor waits for.
std::string FormerLifeText(Turn& turn, const Actor& actor);
/// The node was lost without a verdict, or is when the head starts: who waits for its fence looks
/// again then.
void AwaitFence(Turn& turn, const Node& lost);
/// The node is there again with what it reports: what that lacks has ended.
void SettleFormerLives(Turn& turn, const Node& node, const wire::RegisterNode& report);
/// The node says that this life has ended.
void NoteFormerLifeEnded(Turn& turn, const Node& node, Actor& actor, std::uint64_t incarnation);

}  // namespace troupe::head
