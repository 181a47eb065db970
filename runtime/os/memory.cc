#include "runtime/os/memory.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>

#include "runtime/os/cgroup.h"
#include "runtime/os/text.h"

namespace troupe::os {

Memory ReadMemory() {
  Memory memory;
  std::istringstream lines(ReadText("/proc/meminfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    std::uint64_t kib = 0;
    if (!(fields >> name >> kib)) continue;
    if (name == "MemTotal:") memory.total_bytes = kib << 10;
    if (name == "MemAvailable:") memory.available_bytes = kib << 10;
  }
  if (const std::optional<GroupMemory> group = ReadGroupMemory(); group && group->limit_bytes < memory.total_bytes) {
    memory.total_bytes = group->limit_bytes;
    memory.available_bytes = std::min(memory.available_bytes, group->available_bytes);
  }
  return memory;
}

}  // namespace troupe::os
