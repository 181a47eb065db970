// Everything a worker decides: (input, now) -> effects.
//
// View: one node. Pure: no clock, no thread, no I/O; ordered containers, so that the same inputs
// give the same effects (the simulator runs many of these). The shell (node.h) performs the effects
// in order and feeds back what happened.
//
// Session with the head: OnHeadUp -> RegisterNode (what is held goes along) -> NodeRegistered ->
// what was kept is sent again. A head of a lower incarnation than seen is refused. Losing the head
// ends nothing but, after `fence_after`, actors that may be re-created elsewhere (decision 19).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "worker/core/actors.h"
#include "worker/core/launches.h"
#include "worker/core/relay_table.h"

namespace troupe::worker {

/// The beginning of a session with a head.
struct HeadSession {
  ClusterId cluster;
  NodeId node;
  std::uint64_t head_incarnation = 0;
};

/// The state that an earlier life of this worker wrote down (SaveState).
struct RememberedState {
  std::uint64_t incarnation = 0;
  std::uint64_t head_incarnation = 0;
};

/// The periods of sessions that the head wants from its nodes.
struct Periods {
  Duration heartbeat = std::chrono::seconds(1);
  Duration lease = std::chrono::seconds(5);
  std::optional<Duration> measures;  // nullopt: it wants none
};

class WorkerCore {
 public:
  /// `random` must outlive the core.
  WorkerCore(NodeFacts facts, const CoreLimits& limits, const RememberedState& remembered,
             Random& random);

  Effects OnHeadUp(const HeadSession& session, Instant now);
  Effects OnHeadMessage(wire::Message message, Instant now);
  Effects OnHeadDown(Instant now);

  Effects OnZygote(bool ready, const std::string& python_version, Instant now);
  /// How what --preimport asked for is, each for people.
  Effects OnPreimports(std::vector<std::string> each, Instant now);
  /// Handles new measures of the node and its devices.
  Effects OnMeasured(std::vector<wire::Measure> measures, Instant now);
  /// `started_from`: for people, by which zygote or why by none; "": the node's own.
  Effects OnForked(ProcessId id, int pid, Instant now, std::string started_from = "");
  Effects OnStartFailed(ProcessId id, const std::string& error, Instant now);
  /// A message of a process; requests for the head (id != 0) are relayed.
  Effects OnProcessMessage(ProcessId id, wire::Message message, Instant now);
  Effects OnExited(ProcessId id, ExitInfo exit, Instant now);
  /// A process's channel has been read to the end.
  Effects OnDrained(ProcessId id, Instant now);
  /// Nothing of a process's family runs any more; after OnExited and OnDrained.
  Effects OnGone(ProcessId id, Instant now);

  /// Handles the result of SweepProcesses: these have begun to exit.
  Effects OnSwept(std::uint64_t ticket, const std::vector<ProcessId>& exiting, Instant now);

  Effects OnBlob(std::uint64_t ticket, const StatusOr<std::string>& path, Instant now);
  Effects OnValueKept(ProcessId id, const StatusOr<KeptValue>& kept, Instant now);
  /// Handles the result of DialPeer.
  Effects OnPeerProbed(std::uint64_t question, const NodeId& node, bool reached, Instant now);
  Effects OnTimer(Instant now);
  /// Ends everything, code of ranks with time for a last word; LeaveNode follows when nothing is
  /// left. Again: at once.
  Effects Leave(const std::string& reason, Instant now);

  /// Returns the address where a living process of this node serves calls, or "".
  std::string CallSocketOf(ProcessId id) const;

  const ReservationTable& leases() const { return context_.leases; }
  const ProcessTable& processes() const { return context_.processes; }
  /// How often the head wants NodeMeasures; nullopt: it wants none.
  std::optional<Duration> measures_every() const { return periods_.measures; }
  const NodeFacts& facts() const { return context_.facts; }
  NodeId node() const { return context_.node; }
  bool registered() const { return context_.outbox.registered(); }
  bool leaving() const { return leaving_; }
  /// All that it keeps of what is not over, or that its head has not acknowledged yet.
  std::size_t held() const {
    return launches_.held() + actors_.held() + relays_.size() + context_.outbox.size() +
           context_.processes.all().size() + beats_sent_.size();
  }

 private:
  void Register(Effects* out);
  void OnNodeRegistered(const wire::NodeRegistered& message, Instant now, Effects* out);
  void OnReserve(std::uint64_t id, const wire::Reserve& reserve, Instant now, Effects* out);
  void OnRelease(std::uint64_t id, const wire::Release& release, Instant now, Effects* out);
  void EndLease(const ReservationKey& key, Instant now, Effects* out);
  void PostFreed(Effects* out);
  void DispatchToParts(wire::Message& message, Instant now, Effects* out);
  void RemoveIfOver(Process& process, Instant now, Effects* out);
  void Beat(Instant now, Effects* out);
  void SayLeaving(Effects* out) const;
  void OnRevoked(wire::Revoked revoked, Effects* out);
  /// Closes every input: asks for the next wake-up.
  Effects Done(Effects effects, Instant now);

  CoreContext context_;
  Launches launches_;
  Actors actors_;
  RelayTable relays_;
  std::uint64_t incarnation_ = 0;
  std::uint64_t head_incarnation_ = 0;
  Periods periods_;
  std::optional<Instant> beat_due_;
  std::map<std::uint64_t, Instant> beats_sent_;  // not acknowledged yet
  Instant registering_;                          // sending of the latest RegisterNode
  Instant renewed_;         // sending of the last acknowledged heartbeat or registration
  Instant heard_;           // last word of the head
  wire::Revoked revoked_;   // as the head said last
  std::size_t probes_ = 0;  // how many peers are being probed
  bool zygote_ready_ = false;
  std::vector<std::string> preimports_;
  bool leaving_ = false;
  bool left_ = false;
  std::string leave_reason_;
};

}  // namespace troupe::worker
