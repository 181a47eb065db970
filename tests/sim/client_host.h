// A caller in the simulation: submits launches, watches and cancels them, loses its connection,
// ends.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/sim/checkers.h"
#include "tests/sim/head_host.h"

namespace troupe::sim {

class ClientHost {
 public:
  ClientHost(SimLoop& loop, const FaultPlan& plan, Checker& checker, HeadHost& head,
             std::size_t index)
      : loop_(loop),
        plan_(plan),
        checker_(checker),
        head_(head),
        id_(9, index + 1),
        random_(loop.random().Next()) {}

  void Start() { Dial(); }
  /// By which it comes to the head; nil: by none.
  TokenId token;
  /// Called when the client has learnt an outcome that it waited for.
  std::function<void()> on_learnt;
  /// Writes a value of its own once; repeats the same write until it is answered.
  void Write();
  /// Asks for a launch; repeats until the head has accepted or refused it.
  void Submit(wire::LaunchSpec spec);
  /// Makes an actor that is started again whenever it ends, and calls it until it is told to kill
  /// it.
  void MakeActor(wire::ActorSpec spec);
  /// Kills its own actor of that name, if it has one, and makes another at once: as often as it
  /// takes, where another caller has the name.
  void TakeName(wire::ActorSpec spec);
  void KillActors();
  /// Nothing of its actors is left, as it is told.
  bool killed() const { return ended_ || actors_.empty(); }
  /// Brings an actor's process, which waits with its constructor for that, what its maker is to
  /// bring.
  std::function<void(const ProcessId&)> bring;
  void End();
  void ResetLink() {
    if (link_) link_->Reset();
  }
  /// Every launch it was promised has an outcome it knows of.
  bool satisfied() const {
    return ended_ || (open_.empty() && writes_.empty() && WaitingFor(true).empty());
  }
  /// The actors whose calls wait; those that hold nothing, or all.
  std::string WaitingFor(bool all) const;
  std::size_t known() const { return outcomes_.size(); }
  std::string Waiting() const;

 private:
  struct Wanted {
    wire::LaunchSpec spec;
    LaunchId launch;
  };
  struct Made {
    wire::ActorSpec spec;
    bool asked = false;  // and answered
    bool kills = false;
    ProcessId brought;
    wire::ActorInfo told;  // the latest word
  };
  void Dial();
  /// Lets the launch start after one that this caller has submitted, if there is one.
  void StartAfterAnother(const RequestId& request, wire::LaunchSpec* spec) const;
  void AskActor(const ActorId& actor);
  /// False: it is no word of an actor of its own.
  bool OnActor(const wire::Message& message);
  void OnMessage(const wire::Message& message);
  void Ask(const RequestId& request);
  void AskWrite(const RequestId& request);
  void Learn(const LaunchId& launch, wire::Outcome outcome);
  void Say(wire::Body body, std::uint64_t id);

  SimLoop& loop_;
  const FaultPlan& plan_;
  Checker& checker_;
  HeadHost& head_;
  const Id128 id_;
  Prng random_;
  std::shared_ptr<Link> link_;
  bool ended_ = false;
  std::uint64_t ids_ = 0;
  std::map<std::uint64_t, RequestId> asked_;
  std::map<RequestId, Wanted> open_;
  std::map<std::uint64_t, RequestId> asked_writes_;
  std::map<RequestId, std::string> writes_;  // not answered yet
  std::map<LaunchId, wire::Outcome> outcomes_;
  std::map<ActorId, Made> actors_;
  std::map<std::uint64_t, ActorId> asked_actors_;
};

}  // namespace troupe::sim
