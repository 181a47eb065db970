// The floor of a call between two processes of one host: 40 bytes to and fro over a Unix socket
// pair, nothing else. benchmarks/call_path.py runs it beside the calls that it measures.
//
//   call_floor ROUNDS CALLER_CPU ACTOR_CPU block|spin     prints p50 and p99 in microseconds
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t kBytes = 40;

double NowUs() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

void Pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

bool Receive(int fd, bool spin) {
  char bytes[256];
  for (int tries = 1;; ++tries) {
    const ssize_t n = ::recv(fd, bytes, sizeof bytes, spin ? MSG_DONTWAIT : 0);
    if (n > 0) return true;
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    if (tries % 4 == 0) ::sched_yield();
  }
}

void Send(int fd) {
  const char bytes[kBytes] = {};
  (void)!::send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: call_floor ROUNDS CALLER_CPU ACTOR_CPU block|spin\n");
    return 2;
  }
  const int rounds = std::atoi(argv[1]);
  const bool spin = std::strcmp(argv[4], "spin") == 0;
  int pair[2];
  if (rounds < 1 || ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 2;
  const pid_t actor = ::fork();
  if (actor == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Pin(std::atoi(argv[3]));
    ::close(pair[0]);
    while (Receive(pair[1], spin)) Send(pair[1]);
    ::_exit(0);
  }
  ::close(pair[1]);
  Pin(std::atoi(argv[2]));
  std::vector<double> took;
  for (int i = -rounds / 10; i < rounds; ++i) {
    const double began = NowUs();
    Send(pair[0]);
    if (!Receive(pair[0], spin)) return 1;
    if (i >= 0) took.push_back(NowUs() - began);
  }
  ::close(pair[0]);
  ::waitpid(actor, nullptr, 0);
  std::sort(took.begin(), took.end());
  std::printf("%.3f %.3f\n", took[took.size() / 2], took[took.size() * 99 / 100]);
}
