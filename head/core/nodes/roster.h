// The roster: nodes that joined, their leases, names and incarnations.
//
//   (absent) --register--> alive --silence 2 s--> suspect --silence 5 s, or a verdict--> dead
//   suspect --heard--> alive        dead --register--> alive (incarnation + 1)
// At the suspicion three peers are asked whether the node answers them. While one says so, or the
// head's own network may be what ended, the node stays suspect, for 75 s of silence at most. So
// does a node whose worker wants a processor or waits for a disk: it says so itself by another
// thread (WorkerHeldUp, worker/pulse.h), and one of the head's own host is looked at. Only this
// code declares a node dead. A verdict (the worker's socket refuses, it said Goodbye, or it came
// back as a new process) needs no silence.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

void OnRegisterNode(Turn& turn, const Request& request, const wire::RegisterNode& message);
void OnHeartbeat(Turn& turn, Node& node, const wire::Heartbeat& message);
/// The node has said all that it had to say since it registered: the first heartbeat after that.
void Settle(Turn& turn, Node& node);
/// How many nodes that are gone, and how many keys of nodes, are remembered: the latest.
inline constexpr std::size_t kDeadNodesMax = 1000;
inline constexpr std::size_t kNodeKeysMax = 20'000;
/// Forgets a node that is gone, or one that never came, with its key.
void ForgetNode(Turn& turn, const NodeId& id);
/// Any word of a node's session renews its lease.
void Heard(Turn& turn, Node& node);
void OnNodeTimer(Turn& turn, const NodeId& id);
void OnWorkerGone(Turn& turn, const Session& session, const SessionId& id);
void OnProbe(Turn& turn, const ProbeDone& input);
/// A worker of this host that wants a processor or waits for a disk is not lost for being silent.
void OnWorkerSeen(Turn& turn, const WorkerSeen& input);
/// A worker that is held up is not lost for being silent.
void OnWorkerHeldUp(Turn& turn, const NodeId& id, const wire::WorkerHeldUp& message);
/// Handles a peer's answer about a silent node.
void OnPeerProbed(Turn& turn, const Node& peer, const wire::PeerProbed& message);
void OnDrainNode(Turn& turn, const Request& request, const wire::DrainNode& message);
/// DrainNode of a worker, of its own node: it was told to end. What ends there is started again
/// elsewhere.
void OnNodeLeaves(Turn& turn, Node& node);
/// `verdict`: its processes are known to be gone, so that nothing waits for a fence.
void LoseNode(Turn& turn, Node& node, const std::string& cause, bool verdict);
/// After replay: every journaled node has a full lease and reports before it is decided about.
void AwaitNodes(Turn& turn);
/// The head itself was held up: nobody's silence counts for that time.
void ExtendLeases(Turn& turn, Duration lag);

}  // namespace troupe::head
