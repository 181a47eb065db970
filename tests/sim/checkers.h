// Invariants of a run at every moment (S1-S9, P1, P2, P7, P8, A1, A2, AN-4, JB-1, JB-2) and at its
// end (L1, P4).
//
// P8: a launch over so many nodes is on that many, as evenly as can be.
//
// A1: nobody is told the address of a former life of an actor. A2: no two lives of an actor run at
// once. AN-4: no two actors of one name do.
//
// Fed with what the journal took, what the head let out, and what peers were told; it never looks
// at the protocol's own conclusions. The first violation is kept, with the time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "head/core/machine/io.h"
#include "head/core/machine/state.h"
#include "tests/sim/sim_loop.h"

namespace troupe::sim {

class Checker {
 public:
  explicit Checker(const SimLoop& loop) : loop_(loop) {}

  /// A row became durable.
  void OnDurable(const head::Row& row);
  /// The head lets this message out.
  void OnSent(const wire::Message& message);
  /// A peer was told an outcome.
  void OnObserved(const wire::Marker& marker);
  /// A driver's Complete was acknowledged as the marker.
  void OnAcknowledged(const LaunchId& launch, const RequestId& request);
  /// A driver of this epoch is about to complete.
  void OnCompleting(const RequestId& request, std::uint64_t epoch) { completing_[request] = epoch; }
  /// After a turn of the head.
  void OnState(const head::State& state);
  /// A client asks for a write of its value, for the first time; was told that it is written.
  void OnWriting(const Id128& client, const RequestId& request) {
    writing_[client].insert(request);
  }
  void OnWritten(const Id128& client, const RequestId& request) {
    written_[client].insert(request);
  }
  /// A process of this life of an actor begins; it is no more.
  void OnActorProcess(const wire::ActorBegin& begin, const ProcessId& process);
  void OnActorProcessGone(const ProcessId& process);
  /// Returns true if the process runs as this life of the actor.
  bool Runs(const ActorId& actor, std::uint64_t incarnation, const ProcessId& process) const;
  /// A process comes to this epoch of its launch's group; is told what it is in one.
  void OnJoining(const LaunchId& launch, std::uint64_t epoch, std::uint32_t rank,
                 std::uint64_t group_epoch) {
    groups_.joined[{launch, epoch}][group_epoch].insert(rank);
  }
  void OnFormed(const LaunchId& launch, std::uint64_t epoch, std::uint32_t rank,
                const wire::GroupFormed& formed);
  std::uint64_t reforms() const { return groups_.reforms; }
  std::uint64_t outlived() const { return groups_.outlived; }
  std::uint64_t replaced() const { return groups_.replaced; }
  std::uint64_t moved() const { return groups_.moved; }
  std::uint64_t hung() const { return groups_.hung; }
  /// A rank was asked how far it is, and would say, or did say, that it is late.
  void OnAsked(const LaunchId& launch, std::uint64_t epoch, std::uint32_t rank, bool late) {
    std::set<std::uint32_t>& all = groups_.late[{launch, epoch}];
    if (late) all.insert(rank);
    if (!late) all.erase(rank);
  }
  /// The head crashed while so many actors were being started again.
  void OnCrashWhileStarting(std::uint64_t actors) { cut_starts_ += actors; }
  std::uint64_t cut_starts() const { return cut_starts_; }
  std::uint64_t lives() const { return lives_.size(); }
  /// How often a process began of an actor whose name another one had had before.
  std::uint64_t successions() const { return successions_; }
  /// At the end: every acknowledged write counts once, and none more than once.
  void CheckValues(const head::State& state);
  /// The journal of a head that starts is what was durable.
  void OnReplay(std::uint64_t rows);

  /// Prints one line of the trace, when it is wanted.
  void Note(std::string_view what, std::string_view detail);
  void set_verbose(bool verbose) { verbose_ = verbose; }
  /// Sets whether the head's policy lets it end launches for others.
  void set_preempts(bool preempts) { preempts_ = preempts; }

  void Fail(const std::string& what);
  void Expect(bool holds, const std::string& what) {
    if (!holds) Fail(what);
  }
  const std::string& failure() const { return failure_; }
  std::uint64_t markers() const { return markers_.size(); }
  std::uint64_t preemptions() const;
  const std::map<LaunchId, wire::Marker>& all_markers() const { return markers_; }
  /// Launches that have succeeded after others.
  std::uint64_t followed() const;

 private:
  const SimLoop& loop_;
  bool verbose_ = false;
  std::string failure_;
  std::uint64_t durable_ = 0;
  bool preempts_ = false;
  struct Submitted {
    std::map<LaunchId, wire::LaunchSpec> specs;
    std::set<RequestId> requests;
  } submitted_;
  std::map<LaunchId, std::uint64_t> preempted_;    // so many of its epochs
  std::map<LaunchId, wire::Marker> markers_;       // in the journal
  std::map<LaunchId, std::uint64_t> epochs_;       // last one begun
  std::map<LaunchId, std::uint64_t> over_;         // last one that failed
  std::map<LaunchId, std::uint64_t> failed_;       // last one of which a rank failed
  std::map<RequestId, std::uint64_t> completing_;  // a driver's Complete -> its epoch
  using EpochKey = std::pair<LaunchId, std::uint64_t>;
  /// JB-1 and JB-2
  void CheckAfter(const head::State& state);
  void OnFinished(const wire::RankDone& done);
  void OnReplaced(const wire::RankReplaced& replaced);
  void OnReformed(const wire::GroupReformed& formed);
  bool MayDie(const wire::RankDone& done) const;
  // Launches that go on without ranks that died (head/core/launched/gang/regroup.h).
  struct RankGroups {
    std::map<EpochKey, std::map<std::uint64_t, std::set<std::uint32_t>>> joined;
    std::map<EpochKey, wire::GroupReformed> formed;  // the latest
    std::map<EpochKey, std::set<std::uint32_t>> died;
    std::set<EpochKey> rosters;
    std::uint64_t reforms = 0;
    std::uint64_t outlived = 0;                        // launches that succeeded without some rank
    std::map<EpochKey, std::set<std::uint32_t>> late;  // by what they said of themselves last
    std::uint64_t replaced = 0;
    std::uint64_t moved = 0;
    std::uint64_t hung = 0;
  } groups_;
  struct Life {
    ActorId actor;
    std::string name;
    std::uint64_t incarnation = 0;
    bool runs = true;
  };
  void OnToldActor(const wire::ActorInfo& info);
  std::map<ProcessId, Life> lives_;
  std::uint64_t cut_starts_ = 0;
  std::map<std::string, ActorId> had_name_;  // the latest
  std::uint64_t successions_ = 0;
  std::map<LaunchId, wire::Outcome> observed_;
  std::map<Id128, std::set<RequestId>> writing_;
  std::map<Id128, std::set<RequestId>> written_;
};

}  // namespace troupe::sim
