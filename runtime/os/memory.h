// How much memory the system has and can give: the machine, or the control group of this process where that has less.
//
// Blocking, for some ten microseconds. Zero where nothing is readable.
#pragma once

#include <cstdint>

namespace troupe::os {

struct Memory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  // without swapping; what the page cache holds of files counts
};
Memory ReadMemory();

}  // namespace troupe::os
