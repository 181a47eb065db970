// The actor directory: where each actor lives, under which incarnation, and how it ended.
//
//   PENDING --placed; ActorPlaced journaled: StartActor--> STARTING --ActorStarted--> ALIVE
//   STARTING, ALIVE --ActorEnded / node lost--> DEAD, or PENDING again (incarnation + 1) while
//   restarts are left; PENDING, STARTING, ALIVE --kill, owner's or launch's end--> DEAD
// What an actor holds while it runs is a group of its own (own_group), or part of a bundle of the
// group it was put into. Inside a launch it lives in the launch's reservation and ends with the
// epoch.
//
// Names:
//   AN-1  A name is free, and nothing is found by it, from when its actor's end is decided: kill()
//         without another start, or nobody wants it. The process may still be there for a while.
//   AN-2  An actor's end takes the name from no other that has it since.
//   AN-3  Who finds an actor where it asked for one (get_if_exists) has it for good: with the
//         answer it is wanted. Its own maker counts that handle as the others, and says nothing of
//         its end meanwhile.
//   AN-4  No two actors that had one name one after the other run user code at once: the next one
//         has the name from when it is made, and starts when the process of the one before has
//         ended, or its node has fenced it (former_lives.h). In a launch names are an epoch's.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

void OnCreateActor(Turn& turn, const Request& request, const wire::CreateActor& message,
                   const std::string& payload);
void OnWatchActor(Turn& turn, const Request& request, const wire::WatchActor& message);
void OnKillActor(Turn& turn, const Request& request, const wire::KillActor& message);
void OnActorStarted(Turn& turn, Node& node, const wire::ActorStarted& message);
void OnActorEnded(Turn& turn, Node& node, const wire::ActorEnded& message,
                  const std::string& exception);

/// A process for tasks that wait lends its CPUs meanwhile.
void OnActorLends(Turn& turn, Node& node, const wire::ActorLends& message);
/// Forgets what the actors of the node lend: it reports that again.
void ForgetLent(Turn& turn, Node& node);
/// Pending actors without a reservation of their own, where they now can go.
void PlaceActors(Turn& turn);
/// The actor whose own reservation was just made.
void StartActorIn(Turn& turn, const Group& group);

}  // namespace troupe::head
