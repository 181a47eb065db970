#include "runtime/os/family.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <sstream>

#include "runtime/os/text.h"

namespace troupe::os {
namespace {

std::vector<pid_t> NumberedEntries(const std::string& folder) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir) return numbers;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string name = entry->d_name;
    pid_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

// Field `index` (3 = state) of /proc/<pid>/stat, empty when it is gone; the name in field 2 may
// hold spaces.
std::string StatText(pid_t pid, int index) {
  const auto text = ReadText("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return "";
  const std::size_t end_of_name = text->rfind(')');
  if (end_of_name == std::string::npos) return "";
  std::istringstream rest(text->substr(end_of_name + 1));
  std::string field;
  for (int i = 3; i <= index; ++i) rest >> field;
  return field;
}

pid_t StatField(pid_t pid, int index) {
  const std::string field = StatText(pid, index);
  pid_t value = 0;
  std::from_chars(field.data(), field.data() + field.size(), value);
  return value;
}

}  // namespace

std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  bool listed = false;
  for (const pid_t task : NumberedEntries("/proc/self/task")) {
    const auto text = ReadText("/proc/self/task/" + std::to_string(task) + "/children");
    if (!text) continue;
    listed = true;
    std::istringstream pids(*text);
    for (pid_t pid; pids >> pid;) children.push_back(pid);
  }
  if (listed) return children;
  const pid_t self = getpid();  // a kernel without CONFIG_PROC_CHILDREN
  for (const pid_t pid : NumberedEntries("/proc")) {
    if (StatField(pid, 4) == self) children.push_back(pid);
  }
  return children;
}

pid_t SessionOf(pid_t pid) { return StatField(pid, 6); }

char StateOf(pid_t pid) {
  const std::string state = StatText(pid, 3);
  return state.empty() ? '\0' : state.front();
}

bool IsExiting(pid_t pid) {
  // PF_EXITING of the kernel's sched.h; set before its descriptors are closed
  constexpr unsigned kExiting = 0x4;
  const std::string field = StatText(pid, 9);
  unsigned flags = 0;
  std::from_chars(field.data(), field.data() + field.size(), flags);
  return field.empty() || (flags & kExiting) != 0;
}

std::optional<std::string> VariableOf(pid_t pid, const std::string& name) {
  const auto text = ReadText("/proc/" + std::to_string(pid) + "/environ");
  if (!text) return std::nullopt;
  const std::string start = name + "=";
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\0', begin), text->size());
    if (text->compare(begin, start.size(), start) == 0) {
      return text->substr(begin + start.size(), end - begin - start.size());
    }
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace troupe::os
