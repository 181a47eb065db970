#include "worker/measures/node_measures.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "runtime/os/host.h"
#include "runtime/os/memory.h"
#include "runtime/os/text.h"

namespace troupe::worker {
namespace {

using wire::MeasureKind;

constexpr std::size_t kInterfacesMax = 16, kDisksMax = 8;
constexpr std::string_view kObjects = "/memfd:troupe-objects";  // runtime/store/segment.cc

void Put(std::vector<wire::Measure>& to, MeasureKind kind, double value, std::string key = "") {
  to.push_back({kind, std::move(key), -1, value});
}

struct ProcessTimes {
  double cpu_s = 0;
  double resident_bytes = 0;
};

std::optional<ProcessTimes> ReadProcess(const std::string& proc, pid_t pid) {
  const auto text = os::ReadText(proc + "/" + std::to_string(pid) + "/stat");
  const std::size_t end = text ? text->rfind(')') : std::string::npos;
  if (end == std::string::npos) return std::nullopt;
  // Behind the name stands field 3; times are fields 14 and 15, resident pages are field 24.
  std::istringstream fields(text->substr(end + 1));
  std::string state;
  fields >> state;
  std::vector<double> numbers;
  for (double each = 0; numbers.size() < 21 && fields >> each;) numbers.push_back(each);
  if (numbers.size() < 21) return std::nullopt;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  return ProcessTimes{(numbers[10] + numbers[11]) / ticks, numbers[20] * page};
}

}  // namespace

NodeMeasurer::NodeMeasurer(std::vector<std::string> folders, std::string proc)
    : folders_(std::move(folders)), proc_(std::move(proc)) {}

std::vector<wire::Measure> NodeMeasurer::Read(const std::vector<MeasuredProcess>& processes) {
  std::vector<wire::Measure> measures;
  ReadCpus(measures);
  ReadMemory(measures);
  ReadDisks(measures);
  ReadNetwork(measures);
  ReadPressure(measures);
  ReadProcesses(processes, measures);
  ReadStore(processes, measures);
  return measures;
}

void NodeMeasurer::ReadCpus(std::vector<wire::Measure>& to) {
  Put(to, MeasureKind::kCpuCount, os::UsableCpus());
  const auto text = os::ReadText(proc_ + "/stat");
  if (!text) return;
  // cpu user nice system idle iowait irq softirq steal ...
  std::istringstream line(text->substr(0, text->find('\n')));
  std::string name;
  line >> name;
  std::uint64_t all = 0, idle = 0, ticks = 0;
  for (int field = 0; field < 8 && line >> ticks; ++field) {
    all += ticks;
    if (field == 3 || field == 4) idle += ticks;
  }
  const std::uint64_t busy = all - idle;
  if (all_ != 0 && all > all_ && busy >= busy_) {
    Put(to, MeasureKind::kCpuRatio,
        std::min(1.0, static_cast<double>(busy - busy_) / static_cast<double>(all - all_)));
  }
  busy_ = busy;
  all_ = all;
}

void NodeMeasurer::ReadMemory(std::vector<wire::Measure>& to) const {
  const os::Memory memory = os::ReadMemory();
  if (memory.total_bytes == 0) return;
  const auto free = static_cast<double>(std::min(memory.available_bytes, memory.total_bytes));
  Put(to, MeasureKind::kMemoryUsedBytes, static_cast<double>(memory.total_bytes) - free);
  Put(to, MeasureKind::kMemoryFreeBytes, free);
}

void NodeMeasurer::ReadDisks(std::vector<wire::Measure>& to) const {
  std::set<dev_t> seen;
  for (const std::string& folder : folders_) {
    struct stat at {};
    struct statvfs disk {};
    if (seen.size() == kDisksMax || stat(folder.c_str(), &at) != 0 ||
        statvfs(folder.c_str(), &disk) != 0 || !seen.insert(at.st_dev).second)
      continue;
    const auto block = static_cast<double>(disk.f_frsize);
    Put(to, MeasureKind::kDiskUsedBytes, static_cast<double>(disk.f_blocks - disk.f_bfree) * block,
        folder);
    Put(to, MeasureKind::kDiskFreeBytes, static_cast<double>(disk.f_bavail) * block, folder);
  }
}

void NodeMeasurer::ReadNetwork(std::vector<wire::Measure>& to) const {
  const auto text = os::ReadText(proc_ + "/net/dev");
  if (!text) return;
  std::istringstream lines(*text);
  std::size_t interfaces = 0;
  for (std::string line; interfaces < kInterfacesMax && std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;  // a line of headings
    std::string name = line.substr(0, colon);
    name.erase(0, name.find_first_not_of(' '));
    if (name == "lo") continue;
    std::istringstream numbers(line.substr(colon + 1));
    std::vector<double> all;
    for (double each = 0; all.size() < 9 && numbers >> each;) all.push_back(each);
    if (all.size() < 9) continue;
    ++interfaces;
    Put(to, MeasureKind::kNetworkReceivedBytes, all[0], name);
    Put(to, MeasureKind::kNetworkSentBytes, all[8], name);
  }
}

void NodeMeasurer::ReadPressure(std::vector<wire::Measure>& to) const {
  for (const char* resource : {"cpu", "memory", "io"}) {
    const auto text = os::ReadText(proc_ + "/pressure/" + resource);
    constexpr std::string_view kSome = "some avg10=";
    if (!text || !text->starts_with(kSome)) continue;
    std::istringstream number(text->substr(kSome.size()));
    double percent = 0;
    if (number >> percent) Put(to, MeasureKind::kPressureRatio, percent / 100, resource);
  }
}

void NodeMeasurer::ReadProcesses(const std::vector<MeasuredProcess>& processes,
                                 std::vector<wire::Measure>& to) {
  std::map<std::string, double> resident;
  std::map<pid_t, double> seen;
  for (const MeasuredProcess& each : processes) {
    const std::optional<ProcessTimes> times = ReadProcess(proc_, each.pid);
    if (!times) continue;
    const auto before = seen_s_.find(each.pid);
    const bool known = before != seen_s_.end() && before->second <= times->cpu_s;
    cpu_s_[each.component] += times->cpu_s - (known ? before->second : 0);
    resident[each.component] += times->resident_bytes;
    seen[each.pid] = times->cpu_s;
  }
  seen_s_ = std::move(seen);
  for (const auto& [component, seconds] : cpu_s_)
    Put(to, MeasureKind::kComponentCpuSeconds, seconds, component);
  for (const auto& [component, bytes] : resident)
    Put(to, MeasureKind::kComponentMemoryBytes, bytes, component);
}

/// Segments are memfds that their makers hold open.
void NodeMeasurer::ReadStore(const std::vector<MeasuredProcess>& processes,
                             std::vector<wire::Measure>& to) const {
  std::set<ino_t> segments;
  double bytes = 0;
  for (const MeasuredProcess& process : processes) {
    std::error_code error;
    const std::string folder = proc_ + "/" + std::to_string(process.pid) + "/fd";
    std::filesystem::directory_iterator each(folder, error);
    for (; !error && each != std::filesystem::directory_iterator(); each.increment(error)) {
      char target[64];
      const ssize_t size = readlink(each->path().c_str(), target, sizeof target);
      if (size < 0 ||
          !std::string_view(target, static_cast<std::size_t>(size)).starts_with(kObjects))
        continue;
      struct stat at {};
      if (stat(each->path().c_str(), &at) == 0 && segments.insert(at.st_ino).second)
        bytes += static_cast<double>(at.st_blocks) * 512;
    }
  }
  Put(to, MeasureKind::kStoreUsedBytes, bytes);
}

}  // namespace troupe::worker
