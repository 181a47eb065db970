// Method: real processes; everything that is waited for is waited for by poll on a descriptor.
#include "runtime/os/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "runtime/os/family.h"
#include "runtime/os/signals.h"

namespace troupe::os {
namespace {

bool Readable(int fd, int timeout_ms = 10000) {
  pollfd poll_fd{fd, POLLIN, 0};
  return poll(&poll_fd, 1, timeout_ms) == 1;
}
Reaped WaitFor(const Spawned& child) {
  EXPECT_TRUE(Readable(child.pidfd.get()));
  Reaped reaped;
  reaped.pid = waitpid(child.pid, &reaped.status, 0);
  return reaped;
}
SpawnOptions Shell(const std::string& script) {
  SpawnOptions options;
  options.argv = {"sh", "-c", script};
  options.environment = {"PATH=/usr/bin:/bin", "MARK=me"};
  return options;
}

TEST(Process, ExitStatusAndEnvironmentArrive) {
  const auto child = Spawn(Shell("test \"$MARK\" = me && exit 3"));
  ASSERT_TRUE(child.ok()) << child.status();
  const Reaped reaped = WaitFor(*child);
  EXPECT_TRUE(WIFEXITED(reaped.status));
  EXPECT_EQ(WEXITSTATUS(reaped.status), 3);
}

TEST(Process, AMissingProgramIsAnErrorWithItsName) {
  SpawnOptions options;
  options.argv = {"/no/such/program"};
  const auto child = Spawn(options);
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(MessageOf(child.status()), "start /no/such/program: No such file or directory");
}

TEST(Process, WhatAProcessDoesIsSeen) {
  const auto child = Spawn(Shell("kill -STOP $$"));
  ASSERT_TRUE(child.ok()) << child.status();
  int status = 0;
  ASSERT_EQ(waitpid(child->pid, &status, WUNTRACED), child->pid);
  EXPECT_EQ(StateOf(child->pid), 'T');
  ASSERT_TRUE(SendSignal(child->pidfd, SIGKILL).ok());
  WaitFor(*child);
  EXPECT_EQ(StateOf(child->pid), '\0');
  EXPECT_EQ(StateOf(getpid()), 'R') << "this one";
}

TEST(Process, WhoWaitsInTheKernelIsSeen) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    if (vfork() == 0) {  // the parent waits, as for a disk, until its child is gone
      static_cast<void>(write(ends[1], "x", 1));
      pause();
    }
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_EQ(StateOf(parent), 'D');
  // The grandchild is this process's parent's child alone.
  std::ifstream children("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                         "/children");
  pid_t grandchild = 0;
  ASSERT_TRUE(children >> grandchild);
  kill(grandchild, SIGKILL);
  EXPECT_EQ(waitpid(parent, nullptr, 0), parent);
  close(ends[0]);
  close(ends[1]);
}

TEST(Process, DescriptorsAreMappedAndOthersClosed) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const int stray = dup(ends[0]);  // inheritable on purpose
  SpawnOptions options = Shell("ls -1 /proc/self/fd | wc -l >&5");
  options.descriptors = {{ends[1], 5}};
  const auto child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  WaitFor(*child);
  char text[16] = "";
  EXPECT_GT(read(ends[0], text, sizeof text - 1), 0);
  EXPECT_LE(std::stoi(text), 5) << "0, 1, 2, 5 and ls's own folder";
  close(stray);
  close(ends[0]);
  close(ends[1]);
}

TEST(Process, SignalThroughPidfdAndAgainAfterTheEnd) {
  const auto child = Spawn(Shell("exec sleep 100"));
  ASSERT_TRUE(child.ok());
  EXPECT_TRUE(SendSignal(child->pidfd, SIGKILL).ok());
  const Reaped reaped = WaitFor(*child);
  EXPECT_TRUE(WIFSIGNALED(reaped.status));
  EXPECT_EQ(WTERMSIG(reaped.status), SIGKILL);
  EXPECT_TRUE(SendSignal(child->pidfd, SIGKILL).ok());
}

TEST(Process, ASubreaperInheritsOrphansAndKnowsWhoseTheyAre) {
  ASSERT_TRUE(BecomeSubreaper().ok());
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  // The orphan says its name itself, once executed: in the midst of execve a process has no
  // environment.
  SpawnOptions options = Shell("sh -c 'echo $$ >&5; kill -STOP $$' &");
  options.new_session = true;
  options.descriptors = {{ends[1], 5}};
  const auto child = Spawn(options);
  ASSERT_TRUE(child.ok());
  char text[16] = "";
  ASSERT_GT(read(ends[0], text, sizeof text - 1), 0);
  const pid_t orphan = std::stoi(text);
  WaitFor(*child);
  const auto children = Children();
  EXPECT_EQ(children, std::vector<pid_t>{orphan});
  EXPECT_EQ(SessionOf(orphan), child->pid);
  EXPECT_EQ(VariableOf(orphan, "MARK"), "me");
  EXPECT_EQ(VariableOf(orphan, "MAR"), std::nullopt);
  const auto pidfd = OpenPidfd(orphan);
  ASSERT_TRUE(pidfd.ok());
  EXPECT_TRUE(SendSignal(*pidfd, SIGKILL).ok());
  EXPECT_TRUE(Readable(pidfd->get()));
  const auto reaped = ReapChildren();
  ASSERT_EQ(reaped.size(), 1u);
  EXPECT_EQ(reaped[0].pid, orphan);
  close(ends[0]);
  close(ends[1]);
}

TEST(Process, DeathSignalEndsTheChildWithItsParent) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    SpawnOptions options = Shell("exec sleep 100");
    options.descriptors = {{ends[1], 5}};  // open in the grandchild until it ends
    options.death_signal = SIGKILL;
    _exit(Spawn(options).ok() ? 0 : 1);
  }
  close(ends[1]);
  int status = 0;
  waitpid(parent, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(Readable(ends[0])) << "end of file: the grandchild is gone";
  close(ends[0]);
  ReapChildren();
}

TEST(Signals, ArriveByDescriptor) {
  auto signals = SignalFd::Open({SIGUSR1});
  ASSERT_TRUE(signals.ok());
  EXPECT_EQ(signals->Next(), std::nullopt);
  kill(getpid(), SIGUSR1);
  EXPECT_TRUE(Readable(signals->fd()));
  EXPECT_EQ(signals->Next(), SIGUSR1);
}

}  // namespace
}  // namespace troupe::os
