// Watchers of launches, groups and actors, and where each is reached: by a session, or behind a
// worker's session.
//
// Pure; view: the cluster.
#pragma once

#include <set>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Returns true if one of the watchers is reached by this session.
bool Watches(const std::set<Route>& watchers, const SessionId& session);
/// Forgets what is reached there, `process` null: by the whole session.
void DropRoutes(State& state, const SessionId& session, const ProcessId* process);
/// A node is back: its processes do not know that pushes were lost. What they watch is theirs again
/// on the new session, and is told them anew.
void ResumeWatches(Turn& turn, Node& node, const SessionId& session);
/// A node is lost: nobody there watches any more.
void DropWatches(Turn& turn, const Node& node);

}  // namespace troupe::head
