// How much memory the system has and can give: the machine, or the control group of this process
// where that has less.
//
// Blocking, for some ten microseconds. Zero where nothing is readable.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace troupe::os {

struct Memory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  // without swapping; what the page cache holds of files counts
};
Memory ReadMemory();

/// Pages that this process holds in memory, in bytes.
std::uint64_t ResidentBytes(pid_t pid);

/// Returns the process's rank among those that the kernel ends first when memory runs out: one with
/// +500 counts as if it used a half of all memory more than it does. A process inherits its
/// parent's. 0 where it cannot be read.
int OomScore(pid_t pid);
/// False where the system refuses: for a process of somebody else, or to go below what a privileged
/// one has set.
bool SetOomScore(pid_t pid, int score);

}  // namespace troupe::os
