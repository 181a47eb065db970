// The steps of one actor's life: it is started, told to end, and dead, whatever the cause (actors.h
// has the states).
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Returns true if another life follows should it end now.
bool MayRestart(const Actor& actor);
/// Journals where it goes, and tells its node to start it there.
void StartActor(Turn& turn, Actor& actor, wire::ActorPlaced place);
/// Tells its node, once more, to start it where it was placed.
void SendStart(Turn& turn, const Actor& actor);
/// So much of the CPUs of a process for tasks is its node's to give, while its task waits.
void Lend(Turn& turn, Node& node, Actor& actor, std::uint64_t cpus);
/// Journals the death, tells who watches, and what follows from it. Not `ended`: its process, or
/// that of the life before one that never began, may still run where it was.
void Die(Turn& turn, Actor& actor, wire::Failure failure, bool restart, std::string exception = {},
         bool ended = true);
/// Tells that node to end the process of that life of the actor.
void TellActorEnded(Turn& turn, const NodeId& node, const ActorId& actor,
                    std::uint64_t incarnation);
/// Dead for good, its process told to end.
void EndActorNow(Turn& turn, Actor& actor, wire::FailureKind kind, const std::string& why);

}  // namespace troupe::head
