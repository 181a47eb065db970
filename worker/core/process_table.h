// The processes of this node and how each is brought to its end.
//
// Pure; view: one node. A process can be brought to its end in three ways, each of which closes
// with SIGKILL to the group and descendants, repeated until the exit is seen:
//   End    it is to go now: ProcessEnd -> ask_grace -> SIGTERM -> term_grace -> SIGKILL
//   Stop   its code may say its last word: ProcessStop, upon which it raises the signal
//          -> the grace it is given -> SIGKILL
//   Leave  it has said its last word and ends as a program does: ProcessEnd(ownTime)
//          -> its exit grace -> SIGKILL
// One that goes on as a program of another's (BecomeProgram) hears no messages: it and its group
// get the signals themselves. A process whose fork was not answered yet is killed as soon as it is.
//
// Life: added -> forked (pid) -> exited and drained, in either order -> gone (nothing of its family
// is left) -> removed by the caller.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "worker/core/effects.h"
#include "worker/core/exit_info.h"
#include "worker/core/reservation_table.h"

namespace troupe::worker {

struct Process {
  ProcessId id;
  wire::ProcessKind kind = wire::ProcessKind::kRank;
  LaunchId launch;  // scope; nil: the cluster's
  std::uint64_t epoch = 0;
  std::uint64_t generation = 0;
  std::int32_t rank = -1;
  ActorId actor;
  std::string socket_path;
  int pid = 0;               // 0: not forked yet
  std::string started_from;  // for people; "": the node's own zygote
  bool exited = false;
  bool drained = false;
  bool gone = false;
  ExitInfo exit;

  enum class Ending { kNo, kStopping, kLeaving, kAsked, kTermed, kKilled };
  Ending ending = Ending::kNo;
  bool misspoke = false;  // true if it has sent messages that nobody takes
  bool ordered = false;  // the end was asked for by us, not its own doing
  bool taken_along = false;  // by its node's end, or its reservation's, and not by its launch's
  wire::FailureKind end_kind = wire::FailureKind::kStopped;  // why, where that is `ordered`
  bool completing = false;   // a driver that has sent its Complete: its code has ended
  bool is_program = false;   // by exec: it does not speak, and hears signals only
  int stop_signal = 0;       // while it stops: which it was told
  wire::ProcessEnd end;
  Instant due;  // next step of the ending
};

class ProcessTable {
 public:
  explicit ProcessTable(const CoreLimits& limits) : limits_(limits) {}

  Process& Add(Process process);
  Process* Find(ProcessId id);
  void Remove(ProcessId id) { processes_.erase(id); }
  bool empty() const { return processes_.empty(); }
  const std::map<ProcessId, Process>& all() const { return processes_; }

  /// Asks it to leave with end.exit_code; no effect when its end has begun.
  void End(Process& process, const wire::ProcessEnd& end, Instant now, Effects* effects);
  /// Asks its code to stop by a signal; again: only with less time. No effect when another end has
  /// begun.
  void Stop(Process& process, const wire::ProcessStop& stop, Instant now, Effects* effects);
  /// A process is not needed any more, and has `grace` to leave by itself. No effect when its end
  /// has begun.
  void Leave(Process& process, wire::ProcessEnd end, Duration grace, Instant now, Effects* effects);
  /// Ends a process by SIGKILL at once.
  void Kill(Process& process, Instant now, Effects* effects);
  /// The process executes a program now. Orders it did not read before reach it as the signal.
  void BecomeProgram(Process& process, Instant now, Effects* effects);
  void OnForked(Process& process, int pid, Instant now, Effects* effects);
  void OnTimer(Instant now, Effects* effects);
  std::optional<Instant> NextDue() const;

 private:
  void Term(Process& process, Instant now, Effects* effects);

  const CoreLimits limits_;
  std::map<ProcessId, Process> processes_;
};

}  // namespace troupe::worker
