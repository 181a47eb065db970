// Method: logs by hand, as glibc, libstdc++ and Python's fault handler write them.
#include "worker/core/log_tail.h"

#include <gtest/gtest.h>

namespace troupe::worker {
namespace {

std::string Lines(const std::string& stem, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += stem + std::to_string(i) + "\n";
  return text;
}

TEST(LogTailTest, TheLastTwentyLines) {
  EXPECT_EQ(LastLines("", true), "");
  EXPECT_EQ(LastLines("a\nb", true), "a\nb");
  EXPECT_EQ(LastLines(Lines("x", 5) + Lines("y", 20), true), Lines("y", 20));
}

TEST(LogTailTest, ACutLineIsLeftOutAndALongOneIsCut) {
  EXPECT_EQ(LastLines("ut line\nwhole\n", false), "whole\n");
  EXPECT_EQ(LastLines(std::string(9000, 'x'), true), std::string(4096, 'x'));
  EXPECT_EQ(LastLines(std::string(3000, 'x') + "\n" + std::string(3000, 'y') + "\n", true),
            std::string(3000, 'y') + "\n");
}

TEST(LogTailTest, WhatStoodBeforeTheFaultHandlerIsKeptHoweverManyThreadsItTellsOf) {
  const std::string cause =
      "terminate called after throwing an instance of 'E'\n  what():  Received data size doesn't "
      "match\n";
  const std::string threads =
      "Thread 0x1 (most recent call first):\n" + Lines("  File \"x.py\", line ", 300);
  const std::string fatal = "Fatal Python error: Aborted\n";
  EXPECT_EQ(LastLines(Lines("step ", 40) + cause + fatal + "\n" + threads +
                          "\nExtension modules: a, b (total: 2)\n",
                      true)
                .find(Lines("step ", 40).substr(Lines("step ", 34).size()) + cause + fatal),
            0u);
  const std::string current =
      "Current thread 0x2 (most recent call first):\n  File \"mine.py\", line 3 in step\n";
  EXPECT_EQ(LastLines(cause + fatal + "\n" + threads + "\n" + current, true),
            cause + fatal + current);
}

TEST(LogTailTest, AFaultHandlerOfLongAgoIsNoEnd) {
  const std::string early =
      "why\nFatal Python error: Aborted\n\nCurrent thread 0x2 (most recent call first):\n  File\n";
  EXPECT_EQ(LastLines(early + Lines("after ", 20), true), Lines("after ", 20));
}

}  // namespace
}  // namespace troupe::worker
