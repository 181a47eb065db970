// Method: tasks that are over, more than are kept; what is given, and in which order.
#include "actors/core/policy/task_history.h"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

std::vector<std::uint64_t> Ids(const TaskHistory& history, std::size_t most) {
  std::vector<std::uint64_t> ids;
  for (const TaskHistory::Ended& each : history.Latest(most)) ids.push_back(each.id);
  return ids;
}

TEST(TaskHistory, TheLatestAreGivenTheOldestOfThemFirst) {
  TaskHistory history;
  EXPECT_TRUE(Ids(history, 10).empty());
  for (std::uint64_t id = 1; id <= 3; ++id) history.Add({.id = id});
  EXPECT_EQ(Ids(history, 10), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(Ids(history, 2), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_TRUE(Ids(history, 0).empty());
}

TEST(TaskHistory, NoMoreIsKeptThanItMay) {
  TaskHistory history;
  const std::uint64_t count = 2 * TaskHistory::kMost + 5;
  for (std::uint64_t id = 1; id <= count; ++id) history.Add({.id = id});
  const std::vector<std::uint64_t> ids = Ids(history, count);
  ASSERT_EQ(ids.size(), TaskHistory::kMost);
  EXPECT_EQ(ids.front(), count - TaskHistory::kMost + 1);
  EXPECT_EQ(ids.back(), count);
}

}  // namespace
}  // namespace troupe::actors
