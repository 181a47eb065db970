#include "actors/net/cpu_budget.h"

#include <sched.h>

#include <atomic>
#include <fstream>
#include <string>

namespace troupe::actors {
namespace {

std::string FirstWord(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

/// Looks at the group and at its parents, for a quota anywhere above limits the process too.
bool QuotaUnder(const std::string& root, std::string group, const char* file, const char* none) {
  while (true) {
    const std::string word = FirstWord(root + group + "/" + file);
    if (!word.empty() && word != none) return true;
    const std::size_t slash = group.rfind('/');
    if (slash == std::string::npos) return false;
    group.resize(slash);
  }
}

bool UnderQuota() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      if (QuotaUnder("/sys/fs/cgroup", group, "cpu.max", "max")) return true;
      if (QuotaUnder("/sys/fs/cgroup/unified", group, "cpu.max", "max")) return true;
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      if (QuotaUnder("/sys/fs/cgroup/cpu", group, "cpu.cfs_quota_us", "-1")) return true;
    }
  }
  return false;
}

std::atomic<SpinOverride> override_to{SpinOverride::kAuto};

}  // namespace

void OverrideSpinning(SpinOverride to) { override_to.store(to); }

bool SpinningAllowed() {
  const SpinOverride override = override_to.load();
  if (override != SpinOverride::kAuto) return override == SpinOverride::kOn;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) < 2) return false;
  return !UnderQuota();
}

}  // namespace troupe::actors
