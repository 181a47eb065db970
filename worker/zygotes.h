// The zygotes of this node: its own, and those keyed by what processes want to have been loaded.
//
// The node's own imports torch, which takes seconds. Until it is ready a light one, which has
// loaded the runtime alone, forks what need not wait, so that it is not executed: a fifth of the
// work.
//
// View: one node; on the worker's loop. Which there are, `core/zygote_table.h` decides; this starts
// and ends them, and knows each of their processes from its start until it is reaped: those of
// zygotes that were ended too.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/async/task.h"
#include "runtime/base/time.h"
#include "worker/core/effects.h"
#include "worker/core/zygote_table.h"
#include "worker/zygote.h"

namespace troupe::worker {

class Zygotes {
 public:
  struct Events {
    // the node's own; also when it is not usable
    std::function<void(bool ready, const std::string& python_version)> ready;
    // news of those that ZygoteOptions::ahead asks for, for people
    std::function<void(const std::vector<std::string>& each)> ahead;
    std::function<void(ProcessId, int pid, UniqueFd pidfd, const std::string& from)> forked;
    std::function<void(ProcessId, const std::string& error)> refused;
    std::function<void(ProcessId)> unanswered;  // see Zygote: it is to be executed
    // these waited for one that cannot be used: they are to be started anew
    std::function<void(std::vector<ForkOrder>)> given_up;
  };

  /// The way to start a process.
  struct Choice {
    Zygote* zygote = nullptr;  // forked by this one; nullptr: it is to be executed
    std::string from;          // when it is executed: for people, why
  };

  /// `clock` must outlive it. Nothing is started before Start() or Choose().
  Zygotes(async::Executor executor, const Clock& clock, ZygoteOptions options, Events events);

  /// Starts the node's own, and once that is ready those that are asked for ahead.
  void Start();
  /// Starts a zygote for this process if need be. For people, a process that is forked from the
  /// node's own says "" of it.
  Choice Choose(const StartProcess& plan);
  /// A process of this key has entered its environment, for which it may have fetched something to
  /// this host.
  void OnSetUp(const ZygoteKey& key) { table_.OnSetUp(key.Text()); }
  /// Takes a request back that still waits. False: it was sent already or is not known.
  bool Withdraw(ProcessId process);

  /// Takes in what they all have said by now; see Zygote::Drain.
  void Drain();
  /// Returns true if it is a zygote, or parked by one.
  bool Has(int pid) const;
  /// This child was reaped, which ended as `how` says. False: it was neither a zygote nor parked by
  /// one.
  bool OnEnded(int pid, const std::function<std::string()>& how);
  /// Ends those that cannot be used.
  void Tidy();
  /// Kills them all, and what they have parked.
  void Stop();

 private:
  struct Keyed {
    std::unique_ptr<Zygote> zygote;
    std::string what;            // for people
    std::string imports;         // how long they took, for people
    std::set<ProcessId> waited;  // for it to be made
    bool later = false;          // see ZygoteReady
  };
  struct Ahead {
    ZygoteKey key;
    std::string text;  // how it is, for people
  };

  Zygote::Events SharedEvents();
  Zygote::Events OwnEvents();
  Zygote::Events FirstEvents();
  /// Ends the light one, once the node's own is there and nobody waits for the former.
  void RetireFirst();
  Zygote::Events KeyedEvents(const std::string& key);
  void StartAhead();
  void SayAhead(const std::string& key, const std::string& how);
  /// Returns the table's choice, with the end and the start that it orders done.
  ZygoteTable::Choice MakeChoice(const ZygoteKey& key, const std::vector<std::string>& waited_for);
  Choice ChooseKeyed(const StartProcess& plan);
  void OnKeyedReady(const std::string& key, const wire::ZygoteReady& ready);
  void OnKeyedForked(const std::string& key, ProcessId id, int pid, UniqueFd pidfd);
  void OnKeyedGivenUp(const std::string& key, const std::string& why);
  void StartKeyed(const ZygoteKey& key);
  void EndKeyed(const std::string& key);
  std::vector<Zygote*> All() const;

  const async::Executor executor_;
  const Clock& clock_;
  const ZygoteOptions options_;
  Events events_;
  ZygoteTable table_;
  std::map<std::string, Keyed> keyed_;
  std::vector<Ahead> ahead_;
  std::map<int, std::unique_ptr<Zygote>> ending_;  // by process, until it is reaped
  const std::unique_ptr<Zygote> own_;
  std::unique_ptr<Zygote> first_;  // the light one; nullptr: there is none any more
};

}  // namespace troupe::worker
