// Method: random begins, answers, losses and closings against the rules; each rule also by an
// example.
#include "actors/core/policy/task_dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "runtime/base/random.h"

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Task = TaskDispatch::Task;

Instant At(int us) { return Instant(std::chrono::microseconds(us)); }

struct Tasks {
  explicit Tasks(int count, Duration each = Duration::zero(), std::int32_t retries = 3)
      : all(count) {
    if (each != Duration::zero()) kind.Took(each);
    for (Task& task : all) {
      task.kind = &kind;
      task.retries = retries;
    }
  }
  Task& operator[](int i) { return all[static_cast<std::size_t>(i)]; }
  TaskDispatch::Kind kind;
  std::vector<Task> all;
};

TEST(TaskDispatch, TL1_WhatFindsNoLaneWaitsInItsOrder) {
  TaskDispatch line;
  Tasks tasks(3);
  for (Task& task : tasks.all) EXPECT_EQ(line.Begin(task, At(0)), 0u);
  EXPECT_EQ(line.waiting(), 3u);
  line.Open(7, At(1));
  EXPECT_EQ(line.Next(7, At(1)), &tasks[0]);
  EXPECT_EQ(line.Next(7, At(1)), nullptr);
  line.Answered(7, {&tasks[0]}, At(5000), false);
  EXPECT_EQ(line.Next(7, At(5000)), &tasks[1]);
  line.Drop(tasks[2]);
  line.Answered(7, {&tasks[1]}, At(10000), false);
  EXPECT_EQ(line.Next(7, At(10000)), nullptr);
  EXPECT_EQ(line.waiting(), 0u);
}

TEST(TaskDispatch, TL2_TasksOfAnUnknownFunctionAreAlone) {
  TaskDispatch line;
  Tasks tasks(3);
  line.Open(1, At(0));
  line.Open(2, At(0));
  EXPECT_EQ(line.Begin(tasks[0], At(0)), 1u);
  EXPECT_EQ(line.Begin(tasks[1], At(0)), 2u);
  EXPECT_EQ(line.Begin(tasks[2], At(0)), 0u);
}

TEST(TaskDispatch, TL2_QuickTasksShareALaneUpToKAhead) {
  TaskDispatch line;
  Tasks quick(300, std::chrono::microseconds(20));
  line.Open(1, At(0));
  int sent = 0;
  for (Task& task : quick.all) sent += line.Begin(task, At(0)) == 1 ? 1 : 0;
  EXPECT_EQ(sent, TaskDispatch::kAhead / std::chrono::microseconds(20));
}

TEST(TaskDispatch, TL2_NothingGoesBesideASlowTaskNorASlowOneBesideOthers) {
  TaskDispatch line;
  Tasks quick(2, std::chrono::microseconds(5));
  Tasks slow(2, std::chrono::seconds(1));
  line.Open(1, At(0));
  EXPECT_EQ(line.Begin(slow[0], At(0)), 1u);
  EXPECT_EQ(line.Begin(quick[0], At(0)), 0u);
  line.Open(2, At(0));
  EXPECT_EQ(line.Next(2, At(0)), &quick[0]);
  EXPECT_EQ(line.Begin(slow[1], At(0)), 0u);
}

TEST(TaskDispatch, TL2_WhatMayNotBeRepeatedIsAlone) {
  TaskDispatch line;
  Tasks once(2, std::chrono::microseconds(5), /*retries=*/0);
  Tasks quick(1, std::chrono::microseconds(5));
  line.Open(1, At(0));
  EXPECT_EQ(line.Begin(once[0], At(0)), 1u);
  EXPECT_EQ(line.Begin(quick[0], At(0)), 0u);
  EXPECT_EQ(line.Begin(once[1], At(0)), 0u);
}

TEST(TaskDispatch, TL3_WhatWasLostComesFirstAndIsAloneFromThenOn) {
  TaskDispatch line;
  Tasks quick(5, std::chrono::microseconds(5));
  line.Open(1, At(0));
  for (int i : {0, 1, 2}) EXPECT_EQ(line.Begin(quick[i], At(0)), 1u);
  line.Close(1);
  for (int i : {3, 4}) EXPECT_EQ(line.Begin(quick[i], At(0)), 0u);
  line.Answered(1, {&quick[0], &quick[1], &quick[2]}, At(50), true);
  for (int i : {0, 1, 2}) line.Again(quick[i]);
  line.Open(2, At(60));
  for (int i : {0, 1, 2}) {
    EXPECT_EQ(line.Next(2, At(60)), &quick[i]);
    EXPECT_EQ(line.Next(2, At(60)), nullptr);
    line.Answered(2, {&quick[i]}, At(70), false);
  }
  EXPECT_EQ(line.Next(2, At(80)), &quick[3]);
  EXPECT_EQ(line.Next(2, At(80)), &quick[4]);
}

TEST(TaskDispatch, TL4_AClosedLaneTakesNothingAndIsForgottenWhenItIsEmpty) {
  TaskDispatch line;
  Tasks tasks(2);
  line.Open(1, At(0));
  EXPECT_FALSE(line.Forget(1));
  EXPECT_EQ(line.Begin(tasks[0], At(0)), 1u);
  line.Close(1);
  EXPECT_FALSE(line.Forget(1));
  EXPECT_EQ(line.Begin(tasks[1], At(0)), 0u);
  EXPECT_THAT(line.Willing(), IsEmpty());
  line.Answered(1, {&tasks[0]}, At(9), false);
  EXPECT_EQ(line.Next(1, At(9)), nullptr);
  EXPECT_TRUE(line.Forget(1));
}

TEST(TaskDispatch, TL4_APausedLaneTakesNothingUntilItIsNot) {
  TaskDispatch line;
  Tasks tasks(1);
  line.Open(1, At(0));
  line.Pause(1, true);
  EXPECT_EQ(line.Begin(tasks[0], At(0)), 0u);
  EXPECT_EQ(line.Next(1, At(0)), nullptr);
  line.Pause(1, false);
  EXPECT_EQ(line.Next(1, At(0)), &tasks[0]);
}

TEST(TaskDispatch, WhatDidNotLeaveWaitsBeforeAllOthers) {
  TaskDispatch line;
  Tasks tasks(2);
  line.Open(1, At(0));
  EXPECT_EQ(line.Begin(tasks[0], At(0)), 1u);
  EXPECT_EQ(line.Begin(tasks[1], At(0)), 0u);
  line.Undo(tasks[0]);
  EXPECT_THAT(line.TakeAll(), ElementsAre(&tasks[0], &tasks[1]));
  EXPECT_EQ(line.waiting(), 0u);
}

TEST(TaskDispatch, ALaneIsIdleWhileItTakesTasksAndHasNone) {
  TaskDispatch line;
  Tasks tasks(1);
  EXPECT_FALSE(line.Idle(1)) << "it is not there";
  line.Open(1, At(0));
  EXPECT_TRUE(line.Idle(1));
  line.Begin(tasks[0], At(1));
  EXPECT_FALSE(line.Idle(1));
  line.Answered(1, {&tasks[0]}, At(2), false);
  EXPECT_TRUE(line.Idle(1));
  line.Pause(1, true);
  EXPECT_FALSE(line.Idle(1));
  line.Pause(1, false);
  line.Close(1);
  EXPECT_FALSE(line.Idle(1));
}

TEST(TaskDispatch, WhatAFunctionTakesIsLearned) {
  TaskDispatch::Kind kind;
  EXPECT_EQ(kind.depth(), 1u);
  kind.Took(std::chrono::milliseconds(50));
  EXPECT_EQ(kind.depth(), 1u);
  for (int i = 0; i < 16; ++i) kind.Took(std::chrono::microseconds(1));
  EXPECT_GT(kind.depth(), 100u);
  EXPECT_LE(kind.depth(), TaskDispatch::kDepthMax);
  for (int i = 0; i < 16; ++i) kind.Took(std::chrono::milliseconds(50));
  EXPECT_EQ(kind.depth(), 1u);
}

/// A model of each lane's tasks, in the order they went there.
class Model {
 public:
  void Check(const TaskDispatch& line) const {
    std::size_t open = 0;
    for (const TaskDispatch::LaneView& view : line.Lanes()) {
      const auto found = with.find(view.lane);
      ASSERT_EQ(view.tasks, found == with.end() ? 0 : found->second.size());
      open += view.open ? 1 : 0;
      if (found == with.end() || found->second.size() < 2) continue;
      for (const Task* task : found->second) {
        ASSERT_NE(task->retries, 0);
        ASSERT_FALSE(task->alone);
      }
    }
    ASSERT_EQ(line.waiting(), waiting);
  }
  std::map<LaneId, std::deque<Task*>> with;
  std::size_t waiting = 0;
};

TEST(TaskDispatch, HoldsUnderAnyOrderOfEvents) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Prng random(seed);
    TaskDispatch line;
    Model model;
    Tasks kinds[] = {Tasks(400, std::chrono::microseconds(10)), Tasks(200),
                     Tasks(200, std::chrono::seconds(1)),
                     Tasks(200, std::chrono::microseconds(3), 0)};
    std::size_t used[4] = {};
    LaneId lanes = 0;
    int now = 0;
    std::size_t done = 0;
    const auto begun = [&](Task& task, LaneId lane) {
      if (lane != 0) model.with[lane].push_back(&task);
    };
    const auto fill = [&](LaneId lane) {
      while (Task* task = line.Next(lane, At(now))) {
        --model.waiting;
        begun(*task, lane);
      }
    };
    for (int step = 0; step < 2000; ++step) {
      now += 1 + static_cast<int>(random.Below(30));
      const std::size_t which = random.Below(10);
      if (which < 4) {
        const std::size_t kind = random.Below(4);
        if (used[kind] == kinds[kind].all.size()) continue;
        Task& task = kinds[kind].all[used[kind]++];
        const LaneId lane = line.Begin(task, At(now));
        begun(task, lane);
        if (lane == 0) ++model.waiting;
      } else if (which == 4 && lanes < 40) {
        line.Open(++lanes, At(now));
        fill(lanes);
      } else if (lanes != 0) {
        const LaneId lane = 1 + random.Below(lanes);
        std::deque<Task*>& with = model.with[lane];
        if (which == 5) {
          line.Close(lane);
          ASSERT_TRUE(!line.Forget(lane) || with.empty());
        } else if (which == 6) {
          const std::vector<Task*> lost(with.begin(), with.end());
          with.clear();
          line.Close(lane);
          line.Answered(lane, lost, At(now), true);
          for (Task* task : lost) {
            line.Again(*task);
            ++model.waiting;
          }
          for (const LaneId willing : line.Willing()) fill(willing);
        } else if (!with.empty()) {
          Task* task = with.front();
          with.pop_front();
          line.Answered(lane, {task}, At(now), false);
          ++done;
          fill(lane);
        }
      }
      model.Check(line);
    }
    EXPECT_GT(done, 50u);
  }
}

}  // namespace
}  // namespace troupe::actors
