// Starts the node's processes, passes messages to and from them, and sees every one of them end.
//
// View: one node; on the worker's loop. It decides nothing: it performs StartProcess, ToProcess and
// SignalProcess, and reports what happened through Events (WorkerCore's inputs). For each process:
// forked or failed; messages (where its zygote ended before it had its request: forked anew before
// any); exited and drained; gone, when no descendant of it is left. All of them are children of
// this process, those that a zygote forked too. Descendants that outlive their process become
// children of this one as well (a subreaper) and are killed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/async/task.h"
#include "runtime/base/time.h"
#include "runtime/os/process.h"
#include "runtime/os/signals.h"
#include "worker/core/effects.h"
#include "worker/core/exit_info.h"
#include "worker/log_files.h"
#include "worker/oom_evidence.h"
#include "worker/process_channel.h"
#include "worker/zygotes.h"

namespace troupe::worker {

class Supervisor {
 public:
  struct Events {
    std::function<void(bool ready, const std::string& python_version)> zygote;
    /// News of the zygotes that ZygoteOptions::ahead asks for, for people.
    std::function<void(const std::vector<std::string>& each)> ahead;
    // `from` what, for people; "": the node's own zygote
    std::function<void(ProcessId, int pid, const std::string& from)> forked;
    std::function<void(ProcessId, const std::string& error)> failed;
    std::function<void(ProcessId, wire::Message)> message;
    std::function<void(ProcessId, ExitInfo)> exited;
    std::function<void(ProcessId)> drained;
    std::function<void(ProcessId)> gone;
  };

  /// `clock` and `logs` must outlive the supervisor.
  Supervisor(async::Executor executor, const Clock& clock, ZygoteOptions zygote, LogFiles& logs,
             Events events);
  ~Supervisor();

  void StartZygote() { zygotes_.Start(); }
  void Start(StartProcess effect) { Start(std::move(effect), 0); }
  void Send(ProcessId id, const wire::Message& message);
  void SendFrame(ProcessId id, std::string frame);
  void Signal(ProcessId id, int signal, bool to_group = false);
  /// Hands over all that these processes' channels hold now. Those that have begun to exit and have
  /// not been reported.
  std::vector<ProcessId> Sweep(const std::vector<ProcessId>& processes);
  /// The last lines of a process's stderr.
  std::string LogTail(ProcessId id) const;
  /// Returns a text if the kernel has lately killed some process here for want of memory whose end
  /// nothing else was blamed for; or "".
  std::string KilledForMemory() const;
  /// SIGCHLD: reaps, and looks for orphans.
  void OnChildren();
  /// To be called every second or so: halves logs over their cap, writes off kills for want of
  /// memory that were nobody's here, and has the kernel take first what uses more than its memory=.
  void Tidy();
  /// Executes `python ARGUMENTS...` in the workers' own environment, its output on `out`; it is no
  /// process of anybody's, may end when it likes, and ends with this worker.
  StatusOr<os::Spawned> StartTool(std::vector<std::string> arguments, int out);
  /// Kills the zygotes and what is left of all families.
  void Stop();
  /// After Stop, blocking: until no descendant is left, or for `limit`; whoever ended the node
  /// finds none of them.
  void AwaitEnd(os::SignalFd& signals, Duration limit);

  /// The process that still writes to this log file; 0: none does.
  int Writer(const std::string& log_file) const;
  bool idle() const { return running_.empty(); }

 private:
  struct Running {
    StartProcess plan;
    std::unique_ptr<ProcessChannel> channel;
    int pid = 0;
    UniqueFd pidfd;
    bool killed = false;  // by us: no question of memory then
    int oom_score = 0;    // the last that it was given here; 0: none
    // how often a zygote's child was to become it and was never given its request
    int tries = 0;
    bool forked = false;  // by a zygote
    std::string from;     // for people; "": the node's own
    bool spoke = false;   // something came on its channel
    bool drained = false;
    bool exited = false;
  };

  Zygotes::Events ZygoteEvents();
  void Start(StartProcess effect, int tries);
  Zygotes::Choice ChooseFor(const StartProcess& plan, int tries);
  void Execute(Running& running, ForkOrder order);
  void OnForked(ProcessId id, int pid, UniqueFd pidfd);
  void Fail(ProcessId id, const std::string& error);
  void OnMessage(ProcessId id, wire::Message message);
  bool StartedAgain(ProcessId id, const os::Reaped& child);
  void OnReaped(const os::Reaped& child);
  void OnExit(ProcessId id, ExitInfo exit);
  void OnChannelEnd(ProcessId id, const Status& reason);
  ExitInfo Describe(const os::Reaped& child, bool killed_by_us);
  void SweepOrphans();
  ProcessId FamilyOf(int pid) const;
  void StartAnew(ProcessId id, int tries);
  void ScoreForMemory();

  const async::Executor executor_;
  const Clock& clock_;
  LogFiles& logs_;
  Events events_;
  std::vector<std::string> base_environment_;
  std::string python_;
  const std::string own_python_path_;
  std::map<ProcessId, Running> running_;
  std::map<int, ProcessId> by_pid_;
  std::set<int> tools_;
  OomEvidence oom_;
  const int oom_score_;  // this process's own
  std::uint64_t tidied_ = 0;
  bool stopping_ = false;
  Zygotes zygotes_;
};

}  // namespace troupe::worker
