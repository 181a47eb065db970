#include "worker/core/exit_info.h"

#include <csignal>
#include <cstdio>
#include <cstring>

namespace troupe::worker {

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string ExitText(const ExitInfo& exit) {
  if (!exit.unknown.empty()) return exit.unknown;
  if (exit.signal == 0) return "exit " + std::to_string(exit.exit_code);
  std::string text = SignalName(exit.signal);
  if (exit.signal != SIGKILL) return text;
  if (!exit.out_of_memory.empty()) text += ", out of memory (" + exit.out_of_memory + ")";
  if (!exit.since.empty()) return text + ", since " + exit.since;
  if (exit.peak_rss_kib > 0) {
    char rss[48];
    std::snprintf(rss, sizeof rss, ", peak RSS %.1f MiB", exit.peak_rss_kib / 1024.0);
    text += rss;
  }
  return text;
}

void DescribeExit(const NodeFacts& facts, const std::string& who, int pid, const ExitInfo& exit,
                  wire::Failure* failure) {
  failure->node_name = facts.name;
  failure->host = facts.host;
  failure->pid = pid;
  failure->signal = exit.signal;
  if (failure->exit_code == 0) failure->exit_code = exit.exit_code;
  failure->peak_rss_kib = exit.peak_rss_kib;
  failure->log_tail = exit.log_tail;
  if (!exit.out_of_memory.empty() && failure->exception_type.empty()) {
    failure->exception_type = "troupe.exceptions.OutOfMemoryError";
  }
  if (failure->cause.empty()) {
    failure->cause = who + " on " + facts.name + " (" + facts.host + "), pid " +
                     std::to_string(pid) + ", ended: " + ExitText(exit);
  }
}

}  // namespace troupe::worker
