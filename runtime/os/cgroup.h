// Facts of this process's control group: a CPU quota, memory, and whether the kernel killed for it.
//
// Blocking, for microseconds. cgroup v2, and v1 where it is mounted; zero or empty when unreadable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::os {

/// Processors' worth of time; 0 when there is no quota.
double CpuQuota();

/// Counts kills by the kernel for want of memory in this process's group.
struct OomKills {
  std::uint64_t count = 0;
  std::string source;  // the file that says so; empty when none does
};
OomKills ReadOomKills();

struct GroupMemory {
  std::uint64_t limit_bytes = 0;
  std::uint64_t available_bytes = 0;  // the pages of files that it has in memory count
};
/// nullopt: there is no limit.
std::optional<GroupMemory> ReadGroupMemory();

}  // namespace troupe::os
