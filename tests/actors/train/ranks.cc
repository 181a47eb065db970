#include "tests/actors/train/ranks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/unique_fd.h"

namespace troupe::train {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto kTestMax = std::chrono::seconds(2 * kSecondsMax);

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now().time_since_epoch())
      .count();
}

Board* NewBoard() {
  void* at =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<Board*>(at);  // zero, as it begins
}

std::string ReadAll(int fd) {
  std::string text;
  char part[4096];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t bytes; (bytes = read(fd, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(bytes));
  return text;
}

struct Child {
  pid_t pid;
  UniqueFd process, err;
};

Child StartRank(int index, int size, Board& board, const Environment& environment,
                const std::function<void(Rank&)>& body) {
  UniqueFd err(memfd_create("stderr", MFD_CLOEXEC));
  const pid_t test = getpid();
  std::fflush(nullptr);  // else a child writes what this process has not yet
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // no rank outlives its test
    if (getppid() != test) _exit(3);
    dup2(err.get(), STDERR_FILENO);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    Rank rank(index, size, board);
    body(rank);
    std::fflush(nullptr);
    _exit(0);
  }
  UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  return {pid, std::move(process), std::move(err)};
}

/// False where it lives still at `until`.
bool EndsBefore(const Child& child, SteadyClock::time_point until) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - SteadyClock::now()).count();
    pollfd fd{child.process.get(), POLLIN, 0};
    const int ready = poll(&fd, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
  }
}

}  // namespace

Board::Mark& Board::At(const std::string& name) {
  const std::uint64_t key = std::hash<std::string>{}(name) | 1;
  for (auto& mark : marks) {
    std::uint64_t free = 0;
    if (mark.key.compare_exchange_strong(free, key) || free == key) return mark;
  }
  std::fprintf(stderr, "no mark is left for %s\n", name.c_str());
  std::abort();
}

void Board::Add(const std::string& name) {
  auto& mark = At(name);
  mark.last_ns = NowNs();
  ++mark.count;
  ++change;
  syscall(SYS_futex, &change, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool Board::Await(const std::string& name, int count) {
  const auto until = SteadyClock::now() + std::chrono::seconds(kSecondsMax);
  auto& mark = At(name);
  for (;;) {
    const auto seen = change.load();
    if (mark.count.load() >= count) return true;
    if (SteadyClock::now() >= until) return false;
    const timespec most{1, 0};
    syscall(SYS_futex, &change, FUTEX_WAIT, seen, &most, nullptr, 0);
  }
}

void Rank::Require(bool holds, const std::string& text) const {
  if (holds) return;
  std::fprintf(stderr, "rank %d: %s\n", index_, text.c_str());
  std::fflush(nullptr);
  _exit(1);
}

void Rank::Await(const std::string& mark, int count) const {
  Require(board_.Await(mark, count), "waited " + std::to_string(kSecondsMax) + " s for " +
                                         std::to_string(count) + " at '" + mark + "'; " +
                                         std::to_string(board_.At(mark).count.load()) + " came");
}

void Rank::Pass(const std::string& mark, int count) const {
  board_.Add(mark);
  Await(mark, count);
}

std::vector<RankEnd> RunRanks(int size, const Environments& environments,
                              const std::function<void(Rank&)>& body, const Meanwhile& meanwhile) {
  Board* board = NewBoard();
  std::vector<Child> children;
  std::vector<pid_t> pids;
  for (int index = 0; index < size; ++index) {
    const auto found = environments.find(index);
    children.push_back(StartRank(
        index, size, *board, found == environments.end() ? Environment{} : found->second, body));
    pids.push_back(children.back().pid);
  }
  if (meanwhile) meanwhile(*board, pids);
  std::vector<RankEnd> ends;
  const auto until = SteadyClock::now() + kTestMax;
  for (int index = 0; index < size; ++index) {
    auto& child = children[static_cast<std::size_t>(index)];
    const bool overdue = !EndsBefore(child, until);
    if (overdue) kill(child.pid, SIGKILL);
    int status = 0;
    waitpid(child.pid, &status, 0);
    ends.push_back({index, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                    WIFSIGNALED(status) ? WTERMSIG(status) : 0, overdue, ReadAll(child.err.get())});
  }
  munmap(board, sizeof(Board));
  return ends;
}

void ExpectSuccess(const std::vector<RankEnd>& ends) {
  for (const auto& end : ends)
    EXPECT_TRUE(end.exit_code == 0)
        << "rank " << end.index << ": exit " << end.exit_code << ", signal " << end.signal
        << (end.overdue ? ", had not ended" : "") << "\n"
        << end.err;
}

void ExpectViolation(const RankEnd& end, const std::string& words) {
  EXPECT_EQ(end.signal, SIGABRT) << "rank " << end.index << ": exit " << end.exit_code << "\n"
                                 << end.err;
  EXPECT_NE(end.err.find(words), std::string::npos) << end.err;
}

}  // namespace troupe::train
