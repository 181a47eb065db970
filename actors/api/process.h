// The process of an actor whose class is C++: from its worker's first message to its end. What
// troupe/_process/actor.py is for Python.
//
// View: one process, which its worker has started from this program's file (wire::
// RuntimeEnvironment::program), with TROUPE_CONTROL_FD saying where its control channel is.
#pragma once

namespace troupe::api {

/// In an actor's process: serves the actor and ends the process. Elsewhere: returns.
void ServeIfActor();
/// In a rank of a launch of a function: runs that and ends the process. Elsewhere: returns.
void RunIfRank();

}  // namespace troupe::api
