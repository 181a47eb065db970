// Method: each rule by an example at its bound; what a pool would do with a change is read off it.
#include "actors/core/policy/task_backlog.h"

#include <gtest/gtest.h>

#include <optional>

namespace troupe::actors {
namespace {

constexpr std::size_t kTasks = TaskBacklog::kTasksMax;
constexpr std::size_t kBytes = TaskBacklog::kBytesMax;

TEST(TaskBacklog, TB1_RoomEndsAtSoManyTasksAndIsToldOfAtHalf) {
  TaskBacklog backlog;
  EXPECT_FALSE(backlog.Full(kTasks - 1));
  EXPECT_TRUE(backlog.Full(kTasks));
  EXPECT_FALSE(backlog.Note(kTasks / 2, 1).room) << "those whose arguments are to come count";
  EXPECT_TRUE(backlog.Note(kTasks / 2, 0).room);
  EXPECT_TRUE(backlog.Note(0, kTasks / 2).room);
}

TEST(TaskBacklog, TB1_RoomEndsAtSoManyBytesAndIsToldOfAtHalf) {
  TaskBacklog backlog;
  backlog.Add(kBytes - 1);
  EXPECT_FALSE(backlog.Full(1));
  backlog.Add(1);
  EXPECT_TRUE(backlog.Full(1));
  backlog.Remove(kBytes / 2 - 1);
  EXPECT_FALSE(backlog.Note(1, 0).room);
  backlog.Remove(1);
  EXPECT_TRUE(backlog.Note(1, 0).room);
}

TEST(TaskBacklog, TB2_AnswersAreExpectedWhileATaskWaitsForAProcess) {
  TaskBacklog backlog;
  EXPECT_EQ(backlog.Note(0, 5).expects, std::nullopt) << "no process is to answer for those";
  EXPECT_EQ(backlog.Note(1, 0).expects, true);
  EXPECT_EQ(backlog.Note(2, 0).expects, std::nullopt) << "said once";
  EXPECT_EQ(backlog.Note(0, 0).expects, false);
  EXPECT_EQ(backlog.Note(0, 0).expects, std::nullopt);
}

TEST(TaskBacklog, TB3_TheFirstTaskThatWaitsWakesOnceUntilAskedAgain) {
  TaskBacklog backlog;
  backlog.Note(0, 9);
  EXPECT_FALSE(backlog.TakeWake());
  backlog.Note(1, 0);
  EXPECT_TRUE(backlog.TakeWake());
  EXPECT_FALSE(backlog.TakeWake());
  backlog.Note(100, 0);
  EXPECT_FALSE(backlog.TakeWake());
  backlog.WakeAbove(100);
  backlog.Note(100, 0);
  EXPECT_FALSE(backlog.TakeWake());
  backlog.Note(101, 0);
  EXPECT_TRUE(backlog.TakeWake());
  backlog.WakeAbove(-1);
  backlog.Note(1000, 0);
  EXPECT_FALSE(backlog.TakeWake());
}

TEST(TaskBacklog, TB3_IdleProcessesWakeOnceAboveTheNumberAskedFor) {
  TaskBacklog backlog;
  EXPECT_FALSE(backlog.counts_idle());
  backlog.NoteIdle(1000);
  EXPECT_FALSE(backlog.TakeWake());
  backlog.WakeAboveIdle(2);
  EXPECT_TRUE(backlog.counts_idle());
  backlog.NoteIdle(2);
  EXPECT_FALSE(backlog.TakeWake());
  backlog.NoteIdle(3);
  EXPECT_TRUE(backlog.TakeWake());
  EXPECT_FALSE(backlog.counts_idle());
  backlog.NoteIdle(4);
  EXPECT_FALSE(backlog.TakeWake());
}

TEST(TaskBacklog, TB3_AReasonOfTheCallersOwnWakesToo) {
  TaskBacklog backlog;
  backlog.Wake();
  backlog.Wake();
  EXPECT_TRUE(backlog.TakeWake());
  EXPECT_FALSE(backlog.TakeWake());
}

TEST(TaskBacklog, TB4_NoBytesWaitWhereNoTaskDoes) {
  TaskBacklog backlog;
  backlog.Add(kBytes);
  backlog.Note(0, 0);
  EXPECT_FALSE(backlog.Full(0));
  backlog.Add(1);
  backlog.Remove(100);
  backlog.Add(kBytes - 1);
  EXPECT_FALSE(backlog.Full(0)) << "more is never taken off than there is";
}

}  // namespace
}  // namespace troupe::actors
