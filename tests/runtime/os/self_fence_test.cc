// Method: forked children that arm the timer and stand still; how each ended.
#include "runtime/os/self_fence.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>

namespace troupe::os {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

Instant Now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant(std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec));
}

/// The wait status of a child that runs `life` and then stands still with every signal blocked that
/// can be.
template <class Life>
int StatusOf(Life life) {
  const pid_t child = fork();
  if (child == 0) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    life();
    for (;;) pause();
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(SelfFenceTest, AProcessThatIsToldNothingMoreIsKilledWithoutAThreadOfItsOwn) {
  SelfFence fence;
  const Instant begin = Now();
  const int status = StatusOf([&fence] {
    if (!fence.Until(Now() + milliseconds(50)).ok()) _exit(1);
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_GE(Now() - begin, milliseconds(50));
}

TEST(SelfFenceTest, ALaterTimeTakesThePlaceOfAnEarlierOne) {
  SelfFence fence;
  const int status = StatusOf([&fence] {
    if (!fence.Until(Now() + seconds(1)).ok() || !fence.Until(Now() + hours(1)).ok()) _exit(1);
    poll(nullptr, 0, 1100);  // past the first time
    _exit(7);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

// Also one from before the machine started, and its start itself.
TEST(SelfFenceTest, ATimeThatIsOverKillsAtOnce) {
  for (const Instant over : {Now() - milliseconds(1), Now() - hours(1 << 20), Instant{}}) {
    SelfFence fence;
    const int status = StatusOf([&] {
      if (!fence.Until(over).ok()) _exit(1);
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  }
}

}  // namespace
}  // namespace troupe::os
