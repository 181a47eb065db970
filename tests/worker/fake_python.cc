// Stands in for the Python interpreter in tests of the supervisor: `-m troupe._process.zygote --fd
// N` forks children of its parent, `-m troupe._process --fd N` is one. What a child does is the
// payload of its RankBegin, a list of words: print, error (to stderr), value, exit3, exit79, abort,
// orphan (a grandchild in its own session that outlives it), wait (for ProcessEnd), stubborn
// (ignores it and SIGTERM). What the zygote does first is the title of the request: "zygote dies",
// "zygote dies once FILE" (where there is no such file, which it makes), "parks one" (forks another
// child, which waits for the zygote's end), "names a dead child once FILE" (one that has ended as
// the answer), "dies before giving once FILE", "dies before giving" (it ends with the answer given
// and the child not given its request), "gives nothing" (the same, and lives on).
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/net/fd_passing.h"
#include "runtime/wire/frame.h"

namespace {

using namespace troupe;  // NOLINT

wire::Message Next(int fd) {
  std::string frame(wire::kHeaderBytes, '\0');
  if (recv(fd, frame.data(), frame.size(), MSG_WAITALL) != static_cast<ssize_t>(frame.size())) {
    _exit(90);
  }
  const auto header = wire::DecodeHeader(frame.data(), {});
  std::string rest(header->rest(), '\0');
  if (recv(fd, rest.data(), rest.size(), MSG_WAITALL) != static_cast<ssize_t>(rest.size()))
    _exit(91);
  return *wire::DecodeFrame(frame + rest);
}

template <class Body>
void Send(int fd, Body body, std::string attachment = "") {
  wire::Message message;
  message.body = std::move(body);
  message.attachment = std::move(attachment);
  const std::string frame = *wire::EncodeFrame(message);
  if (send(fd, frame.data(), frame.size(), MSG_NOSIGNAL) < 0) _exit(92);
}

void LeaveOrphan() {
  if (fork() != 0) return;
  setsid();
  for (;;) pause();
}

[[noreturn]] void Serve(int control) {
  const wire::Message begin = Next(control);
  Send(control, wire::RankPrepared());
  std::istringstream words(begin.attachment);
  for (std::string word; words >> word;) {
    if (word == "print") {
      std::printf("hello\n");
      std::fflush(stdout);
    } else if (word == "error") {
      std::fprintf(stderr, "Traceback: boom\n");
    } else if (word == "value") {
      wire::RankResult result;
      result.outcome = wire::Outcome::kSucceeded;
      Send(control, result, "the value");
    } else if (word == "exit3") {
      _exit(3);
    } else if (word == "exit79") {
      _exit(79);
    } else if (word == "abort") {
      std::abort();
    } else if (word == "orphan") {
      LeaveOrphan();
    } else if (word == "wait") {
      const wire::Message end = Next(control);
      _exit(wire::Get<wire::ProcessEnd>(end.body).exit_code);
    } else if (word == "stubborn") {
      signal(SIGTERM, SIG_IGN);
      for (;;) pause();
    }
  }
  _exit(0);
}

[[noreturn]] void BecomeChild(const wire::ForkRequest& request, std::vector<UniqueFd> fds,
                              pid_t worker) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != worker) _exit(93);
  setsid();
  dup2(fds[1].get(), 1);
  dup2(fds[2].get(), 2);
  clearenv();
  for (const wire::EnvVar& each : request.env) setenv(each.name.c_str(), each.value.c_str(), 1);
  Serve(fds[0].get());
}

// As fork(), but a child of this process's parent, announced to it before it is one.
pid_t ForkChild(int socket) {
  int gate[2], told[2];
  if (pipe(gate) != 0 || pipe(told) != 0) _exit(94);
  const pid_t middle = fork();
  if (middle == 0) {
    const pid_t child = fork();
    if (child == 0) {
      char unused;
      close(gate[1]);
      static_cast<void>(!read(gate[0], &unused, 1));
      return 0;
    }
    const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
    wire::Message message;
    wire::ForkReply reply;
    reply.pid = child;
    message.body = reply;
    if (!net::SendFds(socket, *wire::EncodeFrame(message), {pidfd.get()}).ok()) _exit(95);
    _exit(write(told[1], &child, sizeof child) == sizeof child ? 0 : 96);
  }
  waitpid(middle, nullptr, 0);
  pid_t child = 0;
  if (read(told[0], &child, sizeof child) != sizeof child) _exit(97);
  for (const int fd : {gate[0], gate[1], told[0], told[1]}) close(fd);
  return child;
}

// Returns true if there was no such file; there is one now.
bool FirstTime(const std::string& file) {
  return UniqueFd(open(file.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600)).valid();
}

std::string After(const std::string& title, const std::string& start) {
  return title.rfind(start, 0) == 0 ? title.substr(start.size()) : "";
}

void Reply(int fd, const wire::ForkRequest& request, pid_t pid) {
  wire::ForkReply reply;
  reply.process = request.process;
  reply.pid = pid;
  Send(fd, reply);
}

// A child that waits for the end of this process, and what closes for it before: a descriptor to be
// left open.
pid_t Park(int fd, int* lifeline_end = nullptr) {
  int lifeline[2];
  if (pipe2(lifeline, O_CLOEXEC) != 0) _exit(98);
  const pid_t child = ForkChild(fd);
  if (child == 0) {
    char unused;
    close(lifeline[1]);
    static_cast<void>(!read(lifeline[0], &unused, 1));
    _exit(79);
  }
  close(lifeline[0]);
  if (lifeline_end != nullptr) *lifeline_end = lifeline[1];
  return child;
}

void GiveNothing(int fd, const wire::ForkRequest& request, bool die) {
  int lifeline = -1;
  Reply(fd, request, Park(fd, &lifeline));
  if (die) _exit(1);
  close(lifeline);
}

pid_t EndedChild(int fd, pid_t worker) {
  const pid_t child = ForkChild(fd);
  if (child == 0) _exit(79);
  const std::string stat = "/proc/" + std::to_string(child);
  while (access(stat.c_str(), F_OK) == 0 && getppid() == worker)
    usleep(1000);  // lint-ok: until the worker has reaped it
  return child;
}

// The node's own zygote is ready once the file that FAKE_IMPORTS names is there, if it names one.
void AwaitImports() {
  const char* file = getenv("FAKE_IMPORTS");
  while (file != nullptr && access(file, F_OK) != 0)
    usleep(1000);  // lint-ok: until the test lets it go on, or ends with it
}

[[noreturn]] void RunZygote(int fd) {
  Send(fd, [] {
    wire::ZygoteReady ready;
    ready.pid = getpid();
    ready.usable = true;
    ready.python_version = "3.11";
    return ready;
  }());
  const pid_t worker = getppid();
  for (;;) {
    auto got = net::RecvFds(fd, 1u << 20);
    if (!got.ok() || got->payload.empty()) _exit(0);
    const wire::Message message = *wire::DecodeFrame(got->payload);
    const auto& request = wire::Get<wire::ForkRequest>(message.body);
    if (request.title == "zygote dies") _exit(1);
    const std::string dies_once = After(request.title, "zygote dies once ");
    if (!dies_once.empty() && FirstTime(dies_once)) _exit(1);
    const std::string names_dead_once = After(request.title, "names a dead child once ");
    if (!names_dead_once.empty() && FirstTime(names_dead_once)) {
      Reply(fd, request, EndedChild(fd, worker));
      continue;
    }
    const std::string gives_late = After(request.title, "dies before giving once ");
    const bool dies =
        request.title == "dies before giving" || (!gives_late.empty() && FirstTime(gives_late));
    if (dies || request.title == "gives nothing") {
      GiveNothing(fd, request, dies);
      continue;
    }
    if (request.title == "parks one") Park(fd);
    int given[2];  // as the real one: first the answer, then the request for the child
    if (pipe2(given, O_CLOEXEC) != 0) _exit(98);
    const int pid = ForkChild(fd);
    if (pid == 0) {
      char go = 0;
      if (read(given[0], &go, 1) != 1) _exit(79);
      close(given[0]);
      close(given[1]);
      BecomeChild(request, std::move(got->fds), worker);
    }
    Reply(fd, request, pid);
    static_cast<void>(!write(given[1], "g", 1));
    close(given[0]);
    close(given[1]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const int fd = std::atoi(argv[5]);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::strcmp(argv[3], "troupe._process.zygote") == 0) {
    if (argc == 6) AwaitImports();
    RunZygote(fd);
  }
  Next(fd);  // the ForkRequest; the environment is already as it says
  Serve(fd);
}
