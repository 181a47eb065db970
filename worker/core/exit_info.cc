#include "worker/core/exit_info.h"

#include <csignal>
#include <cstdio>
#include <cstring>

namespace troupe::worker {

bool EndedByWatchdog(const ExitInfo& exit) {
  if (exit.signal != SIGABRT) return false;
  return exit.log_tail.find("Watchdog caught collective operation timeout") != std::string::npos ||
         exit.log_tail.find("Process group watchdog thread terminated") != std::string::npos;
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

namespace {

std::string ChildText(const std::string& source) {
  return "the kernel had killed a process here for want of memory (" + source +
         "), likely one that it started; fewer of those, a DataLoader's workers for example, or "
         "less data held by each, need less";
}

// Nothing for 0, which is not known.
std::string MebibytesText(const char* what, std::uint64_t bytes) {
  if (bytes == 0) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return what + std::string(text);
}

wire::FailureKind KindOf(const ExitInfo& exit) {
  if (!exit.unknown.empty()) return wire::FailureKind::kUnknown;
  return exit.signal != 0 ? wire::FailureKind::kKilled : wire::FailureKind::kExited;
}

}  // namespace

void NoteChildOutOfMemory(const std::string& source, wire::Failure* failure) {
  if (failure->traceback.empty()) {
    failure->cause += (failure->cause.empty() ? "" : "; ") + ChildText(source);
    return;
  }
  if (failure->traceback.back() != '\n') failure->traceback += '\n';
  failure->traceback += ChildText(source) + "\n";  // below the exception, as Python shows its notes
}

std::string ExitText(const ExitInfo& exit) {
  if (!exit.unknown.empty()) return exit.unknown;
  std::string text =
      exit.signal == 0 ? "exit " + std::to_string(exit.exit_code) : SignalName(exit.signal);
  if (!exit.child_out_of_memory.empty()) text += "; " + ChildText(exit.child_out_of_memory);
  if (exit.signal != SIGKILL) return text;
  if (!exit.out_of_memory.empty()) text += ", out of memory (" + exit.out_of_memory + ")";
  text += MebibytesText(", peak RSS ", exit.peak_rss_kib << 10);
  if (exit.out_of_memory.empty()) return text;
  return text + MebibytesText(", limit ", exit.memory_limit_bytes) +
         MebibytesText(", memory= ", exit.memory_asked_bytes);
}

void DescribeExit(const NodeFacts& facts, const std::string& who, int pid, const ExitInfo& exit,
                  wire::Failure* failure) {
  failure->node_name = facts.name;
  failure->host = facts.host;
  failure->pid = pid;
  if (exit.signal != 0) failure->signal = exit.signal;
  if (failure->exit_code == 0) failure->exit_code = exit.exit_code;
  failure->peak_rss_kib = exit.peak_rss_kib;
  if (!exit.log_tail.empty()) failure->log_tail = exit.log_tail;
  failure->symptom = failure->symptom || EndedByWatchdog(exit);
  if (failure->kind == wire::FailureKind::kUnknown) failure->kind = KindOf(exit);
  if (!exit.out_of_memory.empty() && failure->exception_type.empty()) {
    failure->kind = wire::FailureKind::kOutOfMemory;
    failure->memory_limit_bytes = exit.memory_limit_bytes;
    failure->memory_asked_bytes = exit.memory_asked_bytes;
  }
  if (failure->cause.empty()) {
    failure->located = true;
    failure->cause = who + " on " + facts.name + " (" + facts.host + "), pid " +
                     std::to_string(pid) + ", ended: " + ExitText(exit);
  }
}

}  // namespace troupe::worker
