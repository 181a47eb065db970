// The record of a `troupe run`: a launch of mode `command`, with no ranks of its own. Its nodes
// join by themselves and are waited for; its driver is the program that runs the command, a client
// on the head's host, which completes it; the other nodes' programs watch it and follow its marker.
//
//   submitted: epoch 1 begins, STARTING --as many nodes are there as it names--> RUNNING
//   RUNNING --Complete--> TERMINAL
// A run may complete while it is STARTING: a node that does not come is its driver's to give up on.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Begins the run of a SubmitLaunch that was found acceptable; the caller answers. The launch lives
/// in the state.
Launch& BeginRun(Turn& turn, const Request& request, const wire::SubmitLaunch& message);
/// Something changed about the nodes: runs that have theirs go on, the others' watchers hear how
/// many.
void CountNodesOfRuns(Turn& turn);
/// A session ended: who still watches a run that is over hears it (a head ends when all were told).
void TellWatchersLeft(Turn& turn);

}  // namespace troupe::head
