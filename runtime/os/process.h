// Starting, signalling and reaping processes of this user.
//
// View: one process. Spawn() and Reap() return at once (a fork and exec take about a millisecond).
// Signals go through a pidfd, so that a recycled pid is never hit. Errors name the program or the
// pid and the system's reason.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace troupe::os {

struct SpawnOptions {
  std::vector<std::string> argv;                 // argv[0] is looked up in PATH
  std::vector<std::string> environment;          // "NAME=value", the whole of it
  std::string working_directory;                 // empty: this process's
  std::vector<std::pair<int, int>> descriptors;  // (ours, the child's); all others are closed
  bool new_session = false;
  int death_signal = 0;  // signal sent to the child when the calling thread ends
};

struct Spawned {
  pid_t pid = 0;
  UniqueFd pidfd;  // readable once it has ended
};

/// Forks and executes; reports a failed exec as an error, not as a child that ends with 127.
StatusOr<Spawned> Spawn(const SpawnOptions& options);

/// kNotFound when there is no such process.
StatusOr<UniqueFd> OpenPidfd(pid_t pid);
/// Ok also when the process has ended already.
Status SendSignal(const UniqueFd& pidfd, int signal);

struct Reaped {
  pid_t pid = 0;
  int status = 0;  // as wait4 gives it
  std::uint64_t peak_rss_kib = 0;
};
/// Every child that has ended and was not reaped yet. Never blocks.
std::vector<Reaped> ReapChildren();

/// Orphaned descendants of this process become its children instead of init's.
Status BecomeSubreaper();
/// This process is sent `signal` when its parent ends; an error when it has ended already.
Status DieWithParent(int signal, pid_t expected_parent);

}  // namespace troupe::os
