#include "runtime/os/memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>

#include "runtime/base/unique_fd.h"
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
  if (const std::optional<GroupMemory> group = ReadGroupMemory();
      group && group->limit_bytes < memory.total_bytes) {
    memory.total_bytes = group->limit_bytes;
    memory.available_bytes = std::min(memory.available_bytes, group->available_bytes);
  }
  return memory;
}

std::uint64_t ResidentBytes(pid_t pid) {
  std::istringstream fields(ReadText("/proc/" + std::to_string(pid) + "/statm").value_or(""));
  std::uint64_t all = 0, resident = 0;
  return fields >> all >> resident ? resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))
                                   : 0;
}

int OomScore(pid_t pid) {
  std::istringstream text(ReadText("/proc/" + std::to_string(pid) + "/oom_score_adj").value_or(""));
  int score = 0;
  return text >> score ? score : 0;
}

bool SetOomScore(pid_t pid, int score) {
  const UniqueFd file(
      open(("/proc/" + std::to_string(pid) + "/oom_score_adj").c_str(), O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(score);
  return file.valid() &&
         write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace troupe::os
