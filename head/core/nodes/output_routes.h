// Routes of actors' output, sent to the program that shows it.
//
// Pure; view: cluster. A program that shows output says so with the actors it makes
// (ActorSpec::shown); what those make is shown by it as well, and so on down: it is the root of all
// of them. It is told of each where it is placed, and when it ends (OutputOf), and how it calls
// itself once it is alive: the node's worker has the text. A root that was away is told of all that
// live. Where a root is reached is not journaled: a client is known again when it is back, a rank
// when it makes its next actor.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Returns the program that shows the output of an actor that `request` makes; nil: none.
OwnerId RootOf(Turn& turn, const Request& request, const wire::ActorSpec& spec);
/// The root asks from here: it is told of its actors here from now on, of those that live at once
/// where it was not before.
void ReachRootAt(Turn& turn, const OwnerId& root, const Route& route);
/// Tells the root of an actor that is placed. `ended`: of its process's end; `pid`: which that was,
/// where its address does not say.
void TellOutput(Turn& turn, const Actor& actor, bool ended, std::int32_t pid = 0);

}  // namespace troupe::head
