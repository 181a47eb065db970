// Method: files by hand, noted as a worker does it.
#include "worker/core/log_times.h"

#include <gtest/gtest.h>

namespace troupe::worker {
namespace {

TEST(LogTimesTest, LT1_WhatWasWrittenByATimeIsLeftOutAndNothingElse) {
  LogTimes times;
  EXPECT_EQ(times.EndAt("a", 100), std::nullopt) << "nobody has looked at it";
  times.Note("a", 10, 0);
  times.Note("a", 20, 5);
  times.Note("a", 30, 5);
  times.Note("a", 40, 9);
  EXPECT_EQ(times.EndAt("a", 19), 0u);
  EXPECT_EQ(times.EndAt("a", 20), 5u);
  EXPECT_EQ(times.EndAt("a", 39), 5u) << "what came until 40 may have come at 39";
  EXPECT_EQ(times.EndAt("a", 1000), 9u);
  EXPECT_EQ(times.EndAt("b", 1000), std::nullopt);
}

TEST(LogTimesTest, LT1_ThinnedMarksLeaveOutLessNeverMore) {
  LogTimes times;
  const std::uint64_t last = 100 * LogTimes::kMarksMax;
  for (std::uint64_t at = 1; at <= last; ++at) times.Note("a", at, at);
  std::uint64_t late = 0;
  for (std::uint64_t at = 1; at <= last; ++at) {
    const std::uint64_t end = *times.EndAt("a", at);
    EXPECT_LE(end, at);
    if (at > last - LogTimes::kMarksMax / 4) late += at - end;
  }
  EXPECT_EQ(late, 0u) << "of late every mark is there";
}

TEST(LogTimesTest, OfTooManyFilesTheFirstIsForgotten) {
  LogTimes times;
  for (std::size_t i = 0; i <= LogTimes::kFilesMax; ++i) times.Note(std::to_string(i), 1, 1);
  EXPECT_EQ(times.EndAt("0", 2), std::nullopt);
  EXPECT_EQ(times.EndAt("1", 2), 1u);
}

}  // namespace
}  // namespace troupe::worker
