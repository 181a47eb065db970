// How a process ended, and the Failure made of it: the sentence a person reads first.
//
// Pure values and functions.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/wire/messages.h"
#include "worker/core/node_facts.h"

namespace troupe::worker {

struct ExitInfo {
  int exit_code = 0;  // when signal is 0
  int signal = 0;
  std::uint64_t peak_rss_kib = 0;
  // the kernel's evidence, e.g. "cgroup memory.events oom_kill"; or empty
  std::string out_of_memory;
  // with it: what the control group or the machine has, and the process's memory=; 0: not known
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t memory_asked_bytes = 0;
  /// The kernel's evidence where this process was not killed itself: one that it started may have
  /// been.
  std::string child_out_of_memory;
  std::string log_tail;  // last lines of its stderr
  std::string unknown;   // why neither code nor signal is known; usually empty

  bool LeftWell() const { return unknown.empty() && signal == 0 && exit_code == 0; }
};

/// NCCL's watchdog ends a process whose collective failed or waited too long: the cause is in
/// another rank.
bool EndedByWatchdog(const ExitInfo& exit);
/// "SIGKILL", "signal 64".
std::string SignalName(int signal);
/// To a failure that a rank told of itself: the kernel has killed some process here, which may be
/// why. `source` as above.
void NoteChildOutOfMemory(const std::string& source, wire::Failure* failure);
/// "exit 3", "SIGKILL", "SIGKILL, peak RSS 3100.5 MiB", "SIGKILL, out of memory (evidence), peak
/// RSS 3100.5 MiB, limit 4096.0 MiB, memory= 2048.0 MiB".
std::string ExitText(const ExitInfo& exit);
/// Fills in who, where and how; leaves a kind and a cause that are there already, but for the
/// kernel's evidence that it was killed for want of memory.
void DescribeExit(const NodeFacts& facts, const std::string& who, int pid, const ExitInfo& exit,
                  wire::Failure* failure);

}  // namespace troupe::worker
