#include "runtime/os/process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/os/text.h"

namespace troupe::os {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  const std::string folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string candidate = folders.substr(begin, end - begin) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return name;
}

// Everything the child needs, laid out before the fork: after it, only system calls are safe.
struct ChildPlan {
  std::string program;
  std::vector<char*> argv;
  std::vector<char*> environment;
  const char* working_directory = nullptr;
  std::vector<std::pair<int, int>> descriptors;
  bool new_session = false;
  int death_signal = 0;
  pid_t parent = 0;
  int report = -1;
};

[[noreturn]] void Fail(const ChildPlan& plan) {
  const int error = errno;
  (void)!write(plan.report, &error, sizeof error);
  _exit(127);
}

int HighestTarget(const ChildPlan& plan) {
  int highest = STDERR_FILENO;
  for (const auto& [ours, theirs] : plan.descriptors) highest = std::max(highest, theirs);
  return highest;
}

[[noreturn]] void RunChild(ChildPlan& plan) {
  if (plan.death_signal != 0) {
    prctl(PR_SET_PDEATHSIG, plan.death_signal);
    if (getppid() != plan.parent) _exit(127);
  }
  if (plan.new_session) setsid();
  // First out of the way of the targets, then onto them.
  const int base = HighestTarget(plan) + 1;
  plan.report = fcntl(plan.report, F_DUPFD_CLOEXEC, base);
  for (auto& [ours, theirs] : plan.descriptors) {
    ours = fcntl(ours, F_DUPFD_CLOEXEC, base);
    if (ours < 0) Fail(plan);
  }
  for (const auto& [ours, theirs] : plan.descriptors) {
    if (dup2(ours, theirs) < 0) Fail(plan);
  }
  syscall(SYS_close_range, static_cast<unsigned>(base), ~0u, 1u << 2 /* CLOEXEC */);
  for (int fd = STDERR_FILENO + 1; fd < base; ++fd) {
    bool wanted = false;
    for (const auto& [ours, theirs] : plan.descriptors) wanted = wanted || theirs == fd;
    if (!wanted) close(fd);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int ignored : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) signal(ignored, SIG_DFL);
  if (plan.working_directory != nullptr && chdir(plan.working_directory) != 0) Fail(plan);
  execve(plan.program.c_str(), plan.argv.data(), plan.environment.data());
  Fail(plan);
}

}  // namespace

StatusOr<Spawned> Spawn(const SpawnOptions& options) {
  if (options.argv.empty()) return MakeError(ErrorCode::kInvalid, "a command without a program");
  ChildPlan plan;
  plan.program = FindProgram(options.argv[0]);
  plan.argv = Pointers(options.argv);
  plan.environment = Pointers(options.environment);
  if (!options.working_directory.empty()) {
    plan.working_directory = options.working_directory.c_str();
  }
  plan.descriptors = options.descriptors;
  plan.new_session = options.new_session;
  plan.death_signal = options.death_signal;
  plan.parent = getpid();
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return SystemError("pipe for " + plan.program);
  UniqueFd read_end(report[0]);
  UniqueFd write_end(report[1]);
  plan.report = write_end.get();
  const pid_t pid = fork();
  if (pid < 0) return SystemError("fork for " + plan.program);
  if (pid == 0) RunChild(plan);
  write_end.Reset();
  int error = 0;
  ssize_t got;
  do {
    got = read(read_end.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    waitpid(pid, nullptr, 0);
    errno = error;
    return SystemError(
        "start " + plan.program +
        (options.working_directory.empty() ? "" : " in " + options.working_directory));
  }
  Spawned spawned;
  spawned.pid = pid;
  TROUPE_ASSIGN(spawned.pidfd, OpenPidfd(pid));
  return spawned;
}

StatusOr<UniqueFd> OpenPidfd(pid_t pid) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd >= 0) return UniqueFd(fd);
  if (errno == ESRCH) {
    return MakeError(ErrorCode::kNotFound, "no process " + std::to_string(pid));
  }
  return SystemError("pidfd_open " + std::to_string(pid));
}

Status SendSignal(const UniqueFd& pidfd, int signal) {
  if (syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0 || errno == ESRCH) {
    return absl::OkStatus();
  }
  return SystemError("signal " + std::to_string(signal));
}

std::vector<Reaped> ReapChildren() {
  std::vector<Reaped> reaped;
  for (;;) {
    int status = 0;
    struct rusage usage{};
    const pid_t pid = wait4(-1, &status, WNOHANG, &usage);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return reaped;
    reaped.push_back(Reaped{pid, status, static_cast<std::uint64_t>(usage.ru_maxrss)});
  }
}

Status BecomeSubreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return SystemError("PR_SET_CHILD_SUBREAPER");
  return absl::OkStatus();
}

Status DieWithParent(int signal, pid_t expected_parent) {
  if (prctl(PR_SET_PDEATHSIG, signal) != 0) return SystemError("PR_SET_PDEATHSIG");
  if (getppid() != expected_parent) {
    return MakeError(ErrorCode::kConnection, "the parent process has ended");
  }
  return absl::OkStatus();
}

}  // namespace troupe::os
