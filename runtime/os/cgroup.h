// What the control group of this process says: a CPU quota, and whether the kernel killed for memory.
//
// Blocking, for microseconds. cgroup v2, and v1 where it is mounted; zero or empty when unreadable.
#pragma once

#include <cstdint>
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

}  // namespace troupe::os
