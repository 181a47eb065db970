// Stands in for the Python interpreter in tests of the supervisor: `-m troupe._zygote --fd N` forks
// children, `-m troupe._process --fd N` is one. What a child does is the payload of its RankBegin, a
// list of words: print, error (to stderr), value, exit3, abort, orphan (a grandchild in its own session
// that outlives it), wait (for ProcessEnd), stubborn (ignores it and SIGTERM).
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include <poll.h>
#include <sys/syscall.h>

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
  if (recv(fd, rest.data(), rest.size(), MSG_WAITALL) != static_cast<ssize_t>(rest.size())) _exit(91);
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
                              pid_t zygote) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != zygote) _exit(93);
  setsid();
  dup2(fds[1].get(), 1);
  dup2(fds[2].get(), 2);
  clearenv();
  for (const wire::EnvVar& each : request.env) setenv(each.name.c_str(), each.value.c_str(), 1);
  Serve(fds[0].get());
}

[[noreturn]] void RunZygote(int fd) {
  Send(fd, [] {
    wire::ZygoteReady ready;
    ready.pid = getpid();
    ready.usable = true;
    ready.python_version = "3.11";
    return ready;
  }());
  std::map<int, int> children;  // pidfd -> pid
  for (;;) {
    std::vector<pollfd> polls{{fd, POLLIN, 0}};
    for (const auto& [pidfd, pid] : children) polls.push_back({pidfd, POLLIN, 0});
    poll(polls.data(), polls.size(), -1);
    for (std::size_t i = 1; i < polls.size(); ++i) {
      if (polls[i].revents == 0) continue;
      wire::ChildExit exit;
      exit.pid = children[polls[i].fd];
      waitpid(exit.pid, &exit.status, 0);
      children.erase(polls[i].fd);
      close(polls[i].fd);
      Send(fd, exit);
    }
    if (polls[0].revents == 0) continue;
    auto got = net::RecvFds(fd, 1u << 20);
    if (!got.ok() || got->payload.empty()) _exit(0);
    const wire::Message message = *wire::DecodeFrame(got->payload);
    const auto& request = wire::Get<wire::ForkRequest>(message.body);
    if (request.title == "zygote dies") _exit(1);
    const pid_t self = getpid();
    const int pid = fork();
    if (pid == 0) BecomeChild(request, std::move(got->fds), self);
    children[static_cast<int>(syscall(SYS_pidfd_open, pid, 0))] = pid;
    wire::ForkReply reply;
    reply.process = request.process;
    reply.pid = pid;
    Send(fd, reply);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int fd = std::atoi(argv[4]);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::strcmp(argv[2], "troupe._zygote") == 0) RunZygote(fd);
  Next(fd);  // the ForkRequest; the environment is already as it says
  Serve(fd);
}
