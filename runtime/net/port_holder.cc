#include "runtime/net/port_holder.h"

#include <dirent.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

namespace troupe::net {
namespace {

constexpr char kListening[] = "0A";

/// Socket inodes that listen on `port`, from one of /proc/net/tcp and tcp6.
void AddListeningInodes(const char* table, std::uint16_t port, std::set<std::string>& inodes) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);  // the heading
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >>
        inode;
    const std::size_t colon = local.rfind(':');
    if (state != kListening || colon == std::string::npos) continue;
    if (std::strtoul(local.c_str() + colon + 1, nullptr, 16) == port)
      inodes.insert("socket:[" + inode + "]");
  }
}

std::unique_ptr<DIR, int (*)(DIR*)> OpenFolder(const std::string& path) {
  return {opendir(path.c_str()), closedir};
}

bool HoldsOneOf(const std::string& process, const std::set<std::string>& inodes) {
  const std::string folder = "/proc/" + process + "/fd";
  const auto entries = OpenFolder(folder);
  if (!entries) return false;
  while (const dirent* entry = readdir(entries.get())) {
    char target[64];
    const ssize_t n = readlink((folder + "/" + entry->d_name).c_str(), target, sizeof target);
    if (n > 0 && inodes.count(std::string(target, static_cast<std::size_t>(n))) > 0) return true;
  }
  return false;
}

}  // namespace

std::string HolderOfPort(std::uint16_t port) {
  std::set<std::string> inodes;
  AddListeningInodes("/proc/net/tcp", port, inodes);
  AddListeningInodes("/proc/net/tcp6", port, inodes);
  const auto processes = OpenFolder("/proc");
  while (const dirent* entry = processes && !inodes.empty() ? readdir(processes.get()) : nullptr) {
    const std::string process = entry->d_name;
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!HoldsOneOf(process, inodes)) continue;
    std::ifstream file("/proc/" + process + "/comm");
    std::string name;
    std::getline(file, name);
    return "process " + process + " (" + name + ")";
  }
  return "another process";
}

}  // namespace troupe::net
