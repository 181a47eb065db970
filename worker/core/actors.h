// The actors of this node.
//
// Pure; view: one node. StartActor -> process -> ActorReady -> ActorStarted; its end, whatever the
// cause, is one ActorEnded after exit and drained channel. Both are kept until the head has them
// (outbox). A lower or equal incarnation than seen starts nothing (equal repeats ActorStarted).
// CPUs of a process for tasks that nobody uses while its task waits are the node's to give
// (CpuLent): its own, less what it lends to processes for tasks of its own, and what those do not
// need in turn.
// An actor that the head may re-create elsewhere is killed `fence_after` the sending of the last
// acknowledged heartbeat (decision 19); every other keeps running without a head.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "worker/core/core_context.h"

namespace troupe::worker {

class Actors {
 public:
  explicit Actors(CoreContext& context) : context_(context) {}

  /// `refusal`: why nothing is started here any more, for it or at all; empty: something is.
  void Start(const wire::StartActor& start, const std::string& payload, const std::string& refusal,
             Instant now, Effects* out);
  void End(const wire::EndActor& end, Instant now, Effects* out);
  bool OnBlob(std::uint64_t ticket, const StatusOr<std::string>& path, Effects* out);
  bool OnMessage(Process& process, wire::Message message, Instant now, Effects* out);
  void OnStartFailed(Process& process, const std::string& error, Effects* out);
  void OnEnding(Process& process, Effects* out);
  /// Kills what may be re-created elsewhere: this node cannot know that it still should run.
  void Fence(Instant now, Effects* out);
  bool AnyRecreatable() const;
  /// The head has acknowledged what this node sent at `renewed`: those actors hear of it now and
  /// then, and end themselves soon after the fence, should this worker be unable to.
  void Renew(Instant renewed, Effects* out);
  std::vector<wire::HeldActor> Held() const;
  /// The head has forgotten what is lent here.
  void OnRegistered(Effects* out) const;
  /// Actors, and processes that need less than they have.
  std::size_t held() const { return actors_.size() + lenders_.size(); }

 private:
  struct Actor {
    wire::StartActor start;
    ProcessId process;
    bool ready = false;
    bool awaits = false;  // the maker has refs to bring
    bool leaves = false;  // the life is over, as it has reported
    bool graceful = false;
    std::string end_reason;
    wire::FailureKind end_kind{};
    std::string repr_name;  // once it is ready
    wire::Failure failure;  // why the constructor failed
    std::string attachment;
    std::uint64_t ticket = 0;
    bool fetching = false;
    /// CPUs that are not needed: by its process, if that waits, and by those that it lent some.
    std::map<ProcessId, std::uint64_t> unused;
    std::uint64_t lends = 0;  // the sum of `unused`: what it lends the node
  };
  void Spawn(Actor& actor, const std::string& payload, const std::string& payload_path,
             Effects* out);
  void PostStarted(const Actor& actor, Effects* out);
  void PostEnded(const Actor& actor, wire::Failure failure, Effects* out);
  void Forget(const ActorId& id, Effects* out);
  Actor* Of(const Process& process);
  void OnLent(const Process& process, const wire::CpuLent& lent, Effects* out);
  void LendNow(Actor& actor, Effects* out);
  void SayLent(const Actor& actor, Effects* out) const;
  void SendLease(const Actor& actor, Effects* out) const;
  bool Seen(const ActorId& actor, std::uint64_t incarnation);

  CoreContext& context_;
  std::map<ActorId, Actor> actors_;
  std::map<ProcessId, ActorId> lenders_;  // the actor of each process that needs less than it has
  std::map<ActorId, std::uint64_t> seen_;
  std::deque<ActorId> seen_order_;
  Instant renewed_{};  // as the actors know it
};

}  // namespace troupe::worker
