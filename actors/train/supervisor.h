// A thread per process that carries out the decisions of GroupRules for all of its groups, without
// ever waiting for a library: calls that may block run on the reaper's threads, each under a
// deadline.
//
//   Supervisor supervisor(clock, EndThisProcess);
//   const auto id = supervisor.Add(group, GroupRules(name, times, can_revoke));
//   supervisor.Stop({id}, "rank 3 on node-b was killed by SIGKILL");
//
// Groups that die of one cause are stopped by one call: those of a device are then aborted as one,
// as NCCL wants it (else the first abort waits for a kernel of the second group). Never needs the
// GIL; belongs to the process that made it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "actors/train/core/group_rules.h"
#include "actors/train/reaper.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace troupe::train {

/// The interface that the supervisor drives: a communicator's calls into its library.
class Supervised {
 public:
  virtual ~Supervised() = default;
  /// Groups of one device are aborted together; -1: by itself.
  virtual int device() const = 0;

  // On the supervisor's thread: return at once.
  virtual void Wake(const std::string& reason) = 0;
  /// A state was reached, with its reason where it is an end.
  virtual void Tell(GroupState state, const std::string& text) = 0;
  /// Looks at what runs; an error stops the group. When to look again, where it has to.
  virtual Status Watch(Instant now, std::optional<Instant>& again) = 0;

  // On a thread of the reaper: block.
  virtual Status Init() = 0;
  virtual Status Revoke() = 0;
  virtual Status Finalize() = 0;
  virtual Status Destroy() = 0;
  /// `all` are of this one's device, and this one is among them.
  virtual void AbortTogether(std::span<Supervised* const> all) = 0;
};

class Supervisor {
 public:
  using Id = std::uint64_t;

  /// `clock` must outlive it. `end_process` is called where a library is stuck, with a sentence; it
  /// is not to return to a healthy process (EndThisProcess).
  Supervisor(const Clock& clock, std::function<void(const std::string&)> end_process);
  /// Stops what is there, and blocks until it is freed.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Begins to form it. It is kept until it is released.
  Id Add(std::shared_ptr<Supervised> group, GroupRules rules);
  /// All return at once. A group that is gone is passed over.
  void Stop(std::span<const Id> groups, const std::string& reason);
  void SurvivorsStopped(Id group);
  void Release(Id group);
  /// Something runs in it from now on, to be watched.
  void Running(Id group);

  const Clock& clock() const { return clock_; }

 private:
  /// Events that were not decided yet; one of each is enough.
  struct Pending {
    std::optional<Status> formed, revoked, finalized;
    std::optional<std::string> stop;
    bool begin = false, survivors = false, release = false, aborted = false, destroyed = false;
  };
  struct Group {
    std::shared_ptr<Supervised> driven;
    GroupRules rules;
    Pending pending;
    std::optional<Instant> watch_at;
  };
  struct Decided {
    Id id;
    std::shared_ptr<Supervised> driven;
    GroupEffects effects;
    GroupState state;
    std::string reason;
  };

  void Run();
  void Post(Id group, const std::function<void(Pending&)>& change);
  bool HasPending() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Decided> Decide(Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Decided> DueWatches(Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WaitForMore(Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Watch(const std::vector<Decided>& due, Instant now);
  void Perform(const std::vector<Decided>& decided);
  void Call(const Decided& one, GroupAct act);
  void Abort(const std::vector<Decided>& decided);

  const Clock& clock_;
  const std::function<void(const std::string&)> end_process_;
  Reaper reaper_;
  Mutex mutex_;
  CondVar changed_;
  std::map<Id, Group> groups_ ABSL_GUARDED_BY(mutex_);
  Id last_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

/// Says the sentence on stderr and kills this process: a call into a stuck library cannot be left
/// in any other way, and its death is what the other ranks are told of.
void EndThisProcess(const std::string& sentence);

}  // namespace troupe::train
