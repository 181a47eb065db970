// Epochs: one attempt of a launch, from its reservation to its end on every node.
//
//   reserved --EpochBegun journaled--> STARTING: StartRanks to all nodes at once
//   STARTING --RanksReady of all; RosterPublished journaled--> RUNNING: PublishRoster to all
//   RUNNING --RankDone of all / the driver's Complete--> marker (markers.h)
//   STARTING, RUNNING --a rank or node lost--> how it ends: ending.h
//     attempts left --> EpochFailed: EndEpoch and Release to all, back to the queue
//     else          --> marker FAILED
// What was sent and not answered is sent again when its node registers anew.
#pragma once

#include <string>
#include <vector>

#include "head/core/turn.h"

namespace troupe::head {

/// The only generation of an epoch's group so far.
inline constexpr std::uint64_t kGeneration = 1;

void BeginEpoch(Turn& turn, const Group& gang);
/// Ranks in the places of others, all in one reservation, begin on a node that the attempt did not
/// begin on.
void SendStartRanksOf(Turn& turn, const Launch& launch, const NodeId& node,
                      const std::vector<wire::NewRank>& ranks);
void OnRanksReady(Turn& turn, Node& node, const wire::RanksReady& message);
void OnRankDone(Turn& turn, Node& node, const wire::RankDone& message, const std::string& value);
void OnRankLeft(Turn& turn, Node& node, const wire::RankLeft& message);
/// A rank's end by the head's own knowledge, or by the driver's word: journaled, and no more.
/// OnRankEnded follows.
void FinishRank(Turn& turn, Launch& launch, std::size_t rank, wire::RankDone done,
                wire::Failure failure, const std::string& value);
/// An end by the head's own knowledge, of the rank that `failure` names, as a failed one.
void FailRank(Turn& turn, Launch& launch, wire::Failure failure);
/// The current epoch is over, and another one follows.
void EndEpoch(Turn& turn, Launch& launch, wire::Failure failure);
/// For the sake of others: another epoch follows in any case, and is not counted as an attempt.
void PreemptEpoch(Turn& turn, Launch& launch, const std::string& why);

/// Rank `r`'s node, names and host in a Failure.
wire::Failure FailureOn(Turn& turn, const Launch& launch, std::int32_t rank, wire::FailureKind kind,
                        const std::string& cause);
/// `verdict`: its ranks have ended; otherwise they may still run, and end when it is heard of
/// again.
void FailLaunchesOn(Turn& turn, const NodeId& node, const std::string& why, bool verdict);
void FailMissingRanks(Turn& turn, const NodeId& node);
void ResumeLaunchesOn(Turn& turn, const NodeId& node);
/// To a node that reports ranks of an epoch that is over.
void TellEpochEnded(Turn& turn, const NodeId& node, const LaunchId& launch, std::uint64_t epoch);
/// The marker stands: every node of the epoch is told, and what its driver made ends.
void EndForMarker(Turn& turn, Launch& launch);

}  // namespace troupe::head
