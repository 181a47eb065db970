// A worker in the simulation: the real WorkerCore, processes made of a few timers, crashes, stops.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/checkers.h"
#include "tests/sim/head_host.h"
#include "worker/core/worker_core.h"

namespace troupe::sim {

/// The name of launches that go on without ranks that died.
inline constexpr char kLivesOn[] = "lives on";
/// The name of those that run for longer than a lost node is waited for, and whose ranks make
/// actors with names.
inline constexpr char kOutlivesNode[] = "outlives a node";

class WorkerHost {
 public:
  /// `local`: on the head's host.
  WorkerHost(SimLoop& loop, const FaultPlan& plan, Checker& checker, HeadHost& head,
             std::size_t index, bool local);

  void Start();
  /// kill -9: its processes die with it.
  void Crash();
  /// SIGSTOP: what arrives waits.
  void StopUntil(Instant until) { stopped_until_ = std::max(stopped_until_, until); }
  void ResetLink() {
    if (link_) link_->Reset();
  }
  void HoldLink(Instant until, bool to_head, bool to_peer) {
    if (link_) link_->Hold(until, to_head, to_peer);
  }
  /// Nothing passes between it and the head, over a new connection neither.
  void CutFromHead(Instant until) {
    cut_until_ = std::max(cut_until_, until);
    HoldLink(until, true, true);
  }
  void Isolate(Instant until) {
    isolated_until_ = std::max(isolated_until_, until);
    CutFromHead(until);
  }
  /// Returns true if it would answer a peer now.
  bool Answers() const {
    return core_.has_value() && loop_.Now() >= stopped_until_ && loop_.Now() >= isolated_until_;
  }
  /// Nobody listens there, and the head can see that.
  bool Refuses() const { return !core_.has_value() && loop_.Now() >= cut_until_; }
  /// As in proc_pid_stat(5): a live one runs, sleeps or waits for a disk, as it happens.
  char State() const;
  /// The worker of a node: of whom the head may ask another one.
  std::function<const WorkerHost*(const NodeId&)> peer_of;
  /// A rank of this epoch has ended: others, on any host, may see a closed connection before
  /// anybody is told why.
  std::function<void(const LaunchId&, std::uint64_t epoch)> disturb_all;
  void Disturb(const LaunchId& launch, std::uint64_t epoch);
  /// SIGTERM: ends what runs, says goodbye, is gone for `away`.
  void Leave(Duration away);
  bool up() const { return core_.has_value(); }
  NodeId id() const { return id_; }
  const worker::WorkerCore* core() const { return core_ ? &*core_ : nullptr; }
  /// Delivers the constructor's refs to the process, if it is here.
  void Bring(const ProcessId& process);
  /// How long a rank's code runs; empty: some seconds.
  std::function<Duration(const wire::RankBegin&)> work_of;
  /// No faults in processes from now on.
  void Heal() { healed_ = true; }

 private:
  struct Process {
    wire::ForkRequest request;
    wire::RankBegin rank;
    wire::ActorBegin actor;
    bool is_rank = false;
    bool stubborn = false;
    bool ending = false;
    RequestId complete;
    ActorId child;
    GroupId share;
    bool leased = false;
    bool awaits = false;
    bool completing = false;
    bool running = false;  // the code runs
    bool returned = false;  // has sent its result, and waits to be told to leave
    std::uint64_t group_epoch = 0;  // epoch of its group, as far as it was told
    bool lives_on = false;  // the launch goes on without ranks that die
    bool outlives_node = false;     // and for longer than a lost node is waited for
    bool stands = false;  // is silent for a while
  };
  using ProcessMap = std::map<ProcessId, Process>;

  void Dial();
  /// Handles messages of the head, in order, later when stopped.
  void Arrive(std::function<void()> run);
  void TakeIn();
  /// Runs `run` in this life, later when stopped.
  void Later(Duration delay, std::string_view name, std::function<void()> run);
  void Perform(worker::Effects effects);
  void Probe(const wire::ProbePeer& probe);
  /// True when it is not to be sent now.
  bool DelayRequest(const wire::Message& message);
  void PrepareActor(ProcessId id);
  void ActorIsReady(ProcessId id);
  void StartOne(const worker::StartProcess& start);
  void FromHead(ProcessId id, wire::Message message);
  void FromWorker(ProcessId id, const wire::Message& message);
  void Run(ProcessId id);
  /// A rank makes an actor of a name that is its own, or finds it; ends it after a while, and makes
  /// the next.
  void TakeName(ProcessId id);
  void OnStop(ProcessId id);
  /// Comes to the re-form of its group, late perhaps, or never.
  void OnPeersLost(ProcessId id, std::uint64_t group_epoch);
  /// Stands still perhaps, and reports others as late, rightly or not, where ranks that keep others
  /// waiting are ended.
  void MayHang(ProcessId id);
  void OnAsked(ProcessId id, const wire::ProcessAskBegun& ask);
  void Drive(ProcessId id);
  void LeaseShares(ProcessId id);
  void OnShare(ProcessId id, const wire::GroupInfo& info);
  void SendComplete(ProcessId id);
  /// A rank's code has ended; it stays until it is told to leave.
  void Return(ProcessId id, wire::RankResult result);
  void Renew(ProcessId id);
  void Exit(ProcessId id, int code, int signal);
  void Say(ProcessId id, wire::Body body, std::string attachment = {}, std::uint64_t number = 0);
  bool Chance(unsigned permille) { return !healed_ && loop_.random().Chance(permille); }

  SimLoop& loop_;
  const FaultPlan& plan_;
  Checker& checker_;
  HeadHost& head_;
  const std::size_t index_;
  const bool local_;
  const NodeId id_;
  Prng random_;
  worker::RememberedState remembered_;
  std::optional<worker::WorkerCore> core_;
  std::uint64_t life_ = 0;
  int pids_ = 0;
  std::shared_ptr<Link> link_;
  std::optional<Instant> wake_at_;
  Instant stopped_until_{};
  Instant cut_until_{};
  Instant isolated_until_{};
  std::deque<std::function<void()>> arrived_;
  ProcessMap processes_;
  bool healed_ = false;
  Duration away_{};  // after it has left
};

}  // namespace troupe::sim
