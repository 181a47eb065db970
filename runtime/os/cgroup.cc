#include "runtime/os/cgroup.h"

#include <cstdlib>
#include <optional>
#include <sstream>

#include "runtime/os/text.h"

namespace troupe::os {
namespace {

// The path of this process's group in `controller`'s hierarchy; "" for v2's own line "0::".
std::string GroupPath(const std::string& controller) {
  std::istringstream lines(ReadText("/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string wanted = controller.empty() ? ",," : "," + controller + ",";
    if (controllers.find(wanted) != std::string::npos) return line.substr(second + 1);
  }
  return "";
}

std::optional<std::uint64_t> Counter(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  std::string name;
  std::uint64_t value = 0;
  while (lines >> name >> value) {
    if (name == key) return value;
  }
  return std::nullopt;
}

// In a container the group's path is often not below the mount: the mount itself is the group.
std::optional<std::string> ReadGroupFile(const std::string& mount, const std::string& path,
                                         const std::string& file) {
  auto text = ReadText(mount + path + "/" + file);
  return text ? text : ReadText(mount + "/" + file);
}

}  // namespace

double CpuQuota() {
  if (const auto max = ReadGroupFile("/sys/fs/cgroup", GroupPath(""), "cpu.max")) {
    std::istringstream fields(*max);
    std::string quota;
    double period = 0;
    fields >> quota >> period;
    if (quota == "max" || period <= 0) return 0;
    return std::strtod(quota.c_str(), nullptr) / period;
  }
  const std::string path = GroupPath("cpu");
  const auto quota = ReadGroupFile("/sys/fs/cgroup/cpu", path, "cpu.cfs_quota_us");
  const auto period = ReadGroupFile("/sys/fs/cgroup/cpu", path, "cpu.cfs_period_us");
  if (!quota || !period) return 0;
  const double time = std::strtod(quota->c_str(), nullptr);
  const double length = std::strtod(period->c_str(), nullptr);
  return time > 0 && length > 0 ? time / length : 0;
}

std::optional<GroupMemory> ReadGroupMemory() {
  std::string mount = "/sys/fs/cgroup";
  std::string path = GroupPath("");
  std::optional<std::string> limit = ReadGroupFile(mount, path, "memory.max");
  const bool second = limit.has_value();
  if (!second) {
    mount += "/memory";
    path = GroupPath("memory");
    limit = ReadGroupFile(mount, path, "memory.limit_in_bytes");
  }
  const auto used = ReadGroupFile(mount, path, second ? "memory.current" : "memory.usage_in_bytes");
  if (!limit || !used || limit->rfind("max", 0) == 0) return std::nullopt;
  const std::string stat = ReadGroupFile(mount, path, "memory.stat").value_or("");
  // the first version counts the groups below apart
  const std::string all = second ? "" : "total_";
  const std::uint64_t cached = Counter(stat, all + "inactive_file").value_or(0) +
                               Counter(stat, all + "active_file").value_or(0);
  GroupMemory memory;
  memory.limit_bytes = std::strtoull(limit->c_str(), nullptr, 10);
  const std::uint64_t in_use = std::strtoull(used->c_str(), nullptr, 10);
  const std::uint64_t held = in_use > cached ? in_use - cached : 0;
  memory.available_bytes = memory.limit_bytes > held ? memory.limit_bytes - held : 0;
  return memory;
}

OomKills ReadOomKills() {
  if (const auto events = ReadGroupFile("/sys/fs/cgroup", GroupPath(""), "memory.events")) {
    if (const auto count = Counter(*events, "oom_kill")) return {*count, "cgroup memory.events"};
  }
  const std::string path = GroupPath("memory");
  if (const auto control = ReadGroupFile("/sys/fs/cgroup/memory", path, "memory.oom_control")) {
    if (const auto count = Counter(*control, "oom_kill")) {
      return {*count, "cgroup memory.oom_control"};
    }
  }
  return {};
}

}  // namespace troupe::os
