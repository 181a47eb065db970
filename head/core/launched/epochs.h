// Epochs: one attempt of a launch, from its reservation to its end on every node.
//
//   reserved --EpochBegun journaled--> STARTING: StartRanks to all nodes at once
//   STARTING --RanksReady of all; RosterPublished journaled--> RUNNING: PublishRoster to all
//   RUNNING --RankDone of all / the driver's Complete--> marker (markers.h)
//   STARTING, RUNNING --a rank or node lost--> how it ends: ending.h
//     attempts left --> EpochFailed: EndEpoch and Release to all, back to the queue
//     else          --> marker FAILED
// Orders without an answer are sent again when their node registers anew.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

void BeginEpoch(Turn& turn, const Group& gang);
void OnRanksReady(Turn& turn, Node& node, const wire::RanksReady& message);
void OnRankDone(Turn& turn, Node& node, const wire::RankDone& message, const std::string& value);
void OnRankLeft(Turn& turn, Node& node, const wire::RankLeft& message);
/// `verdict`: its ranks have ended; otherwise they may still run, and end when it is heard of
/// again.
void FailLaunchesOn(Turn& turn, const NodeId& node, const std::string& why, bool verdict);
void FailMissingRanks(Turn& turn, const NodeId& node);
void ResumeLaunchesOn(Turn& turn, const NodeId& node);

}  // namespace troupe::head
