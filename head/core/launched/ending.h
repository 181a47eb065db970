// How an epoch that runs comes to its end when a rank failed, or when somebody wants it to.
//
//   a rank failed ──> FAILING: the verdict is open ──> closed ──┐
//   cancel, timeout, the caller's end ──────────────────────────┴──> STOPPING: StopRanks
//   every rank has ended, or the grace is over ──> the marker; or EpochFailed, and another epoch
//
// E1 From the first durable failure of a rank on, the epoch does not succeed; the death of one that
//    its launch may go on without is none (R1 in gang/regroup.h).
// E2 The verdict closes at a failure that is no symptom; or when every node of the epoch has said
//    what it knows (RanksSeen) or is lost; or at a cancel, a timeout, the loss of the caller. It
//    names the cause by verdict.h, whoever was heard first.
// E3 The marker of an epoch that was told to stop is written when its last rank has ended, or the
//    grace is over; another epoch begins only after that. After a timeout it also waits until every
//    rank has said where it was (RankWhere), 2 s at most.
// E4 A head that was started again and finds a failed rank, or a cancel, without a marker goes on
//    from there: it asks anew, or tells to stop anew.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// An order to end a launch, and its cause.
struct StopOrder {
  std::string cause;
  std::int32_t signal = 0;  // 0: SIGTERM
  Duration grace{};         // until SIGKILL
  bool timed_out = false;   // the launch's own time was over
};

/// The grace that the launch was submitted with.
Duration StopGrace(const Launch& launch);

/// A rank of the current epoch has ended, and that is in the journal.
void OnRankEnded(Turn& turn, Launch& launch);
/// The current epoch failed for a reason that is not a rank's word.
void FailEpoch(Turn& turn, Launch& launch, wire::Failure failure);
/// CANCELLED: at once where nothing runs, else when its ranks have ended; a second order only takes
/// time away.
void StopLaunch(Turn& turn, Launch& launch, const StopOrder& order);

/// A node that is there does not hold the launch's reservation any more: at once, for it may be
/// given to others.
void LoseReservation(Turn& turn, Launch& launch, const Node& node, const std::string& why);

void OnRanksSeen(Turn& turn, Node& node, const wire::RanksSeen& message);
/// Notes where a rank of a launch that timed out was.
void OnRankWhere(Turn& turn, Node& node, const wire::RankWhere& message);
/// No ending waits any more for the word of this node.
void ForgetNodeInEndings(Turn& turn, const NodeId& node);
/// A node is back: what it was told or asked and may not have heard.
void ResumeEndingOn(Turn& turn, const Launch& launch, const NodeId& node);
void OnEndingTimer(Turn& turn, const LaunchId& id);
/// After replay (E4).
void ResumeEndings(Turn& turn);

/// Answered with the marker, or as fenced when another epoch follows.
void HoldComplete(Launch& launch, const Request& request);

}  // namespace troupe::head
