// Views of actors: for requests by id or by name, for lists, and for watchers.
//
// Pure; nothing here changes an actor.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

void OnGetNamedActor(Turn& turn, const Request& request, const wire::GetNamedActor& message);
void OnListActors(Turn& turn, const Request& request);

/// Returns the actor with a name, in the launch `scope` or else outside of launches; null if there
/// is none.
const Actor* FindNamedActor(Turn& turn, const LaunchId& scope, const std::string& space,
                            const std::string& name);
/// Answers a request with what is known of an actor.
void ReplyActor(Turn& turn, const Request& request, const Actor& actor);
/// A failure where the actor is placed.
wire::Failure FailureAt(Turn& turn, const Actor& actor, wire::FailureKind kind,
                        const std::string& cause);
/// Tells its watchers that it has changed.
void PushActor(Turn& turn, const Actor& actor);
wire::ActorInfo InfoOf(Turn& turn, const Actor& actor);

}  // namespace troupe::head
