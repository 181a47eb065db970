// Method: ends by hand, their texts as a person reads them.
#include "worker/core/exit_info.h"

#include <gtest/gtest.h>

#include <csignal>

namespace troupe::worker {
namespace {

constexpr char kKilled[] =
    "the kernel had killed a process here for want of memory (memory.events), likely one that it "
    "started";

TEST(ExitInfoTest, OneWhoseChildWasKilledForWantOfMemorySaysSo) {
  ExitInfo exit;
  exit.exit_code = 3;
  EXPECT_EQ(ExitText(exit), "exit 3");
  exit.child_out_of_memory = "memory.events";
  EXPECT_EQ(ExitText(exit).rfind(std::string("exit 3; ") + kKilled, 0), 0u) << ExitText(exit);
  wire::Failure failure;
  DescribeExit(NodeFacts(), "rank 1", 7, exit, &failure);
  EXPECT_EQ(failure.kind, wire::FailureKind::kExited) << "it is not the one that was killed";
  EXPECT_TRUE(failure.located);
  EXPECT_NE(failure.cause.find(kKilled), std::string::npos);
}

TEST(ExitInfoTest, OneThatWasKilledForWantOfMemoryHasLimitAndUse) {
  ExitInfo exit;
  exit.signal = SIGKILL;
  exit.peak_rss_kib = 3u << 20;
  exit.memory_limit_bytes = 4ull << 30;
  exit.memory_asked_bytes = 1u << 30;
  EXPECT_EQ(ExitText(exit), "SIGKILL, peak RSS 3072.0 MiB") << "nobody says that it was for memory";
  wire::Failure failure;
  DescribeExit(NodeFacts(), "rank 1", 7, exit, &failure);
  EXPECT_EQ(failure.kind, wire::FailureKind::kKilled);
  EXPECT_EQ(failure.memory_limit_bytes, 0u);
  exit.out_of_memory = "memory.events";
  EXPECT_EQ(ExitText(exit),
            "SIGKILL, out of memory (memory.events), peak RSS 3072.0 MiB, limit 4096.0 MiB, "
            "memory= 1024.0 MiB");
  failure = wire::Failure();
  DescribeExit(NodeFacts(), "rank 1", 7, exit, &failure);
  EXPECT_EQ(failure.kind, wire::FailureKind::kOutOfMemory);
  EXPECT_EQ(failure.exception_type, "") << "what Python raises of it is Python's to say";
  EXPECT_EQ(failure.memory_limit_bytes, 4ull << 30);
  EXPECT_EQ(failure.memory_asked_bytes, 1ull << 30);
  EXPECT_EQ(failure.peak_rss_kib, 3u << 20);
  exit.memory_limit_bytes = exit.memory_asked_bytes = 0;
  EXPECT_EQ(ExitText(exit), "SIGKILL, out of memory (memory.events), peak RSS 3072.0 MiB");
}

TEST(ExitInfoTest, TheNoteStandsBelowATracebackOrWithTheCause) {
  wire::Failure failure;
  failure.cause = "CalledProcessError: died";
  NoteChildOutOfMemory("memory.events", &failure);
  EXPECT_EQ(failure.cause.rfind(std::string("CalledProcessError: died; ") + kKilled, 0), 0u)
      << failure.cause;
  failure.cause = "CalledProcessError: died";
  failure.traceback = "Traceback\nCalledProcessError: died";
  NoteChildOutOfMemory("memory.events", &failure);
  EXPECT_EQ(failure.cause, "CalledProcessError: died");
  EXPECT_EQ(
      failure.traceback.rfind(std::string("Traceback\nCalledProcessError: died\n") + kKilled, 0),
      0u)
      << failure.traceback;
}

}  // namespace
}  // namespace troupe::worker
