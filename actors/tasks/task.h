// A task as its pool keeps it, from its beginning to its answer, and the list of those of one pool.
// Internal to TaskPool.
//
// Both take no lock: that of the pools guards them.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "actors/caller/call_holds.h"
#include "actors/core/policy/task_dispatch.h"
#include "actors/core/policy/task_history.h"
#include "actors/slots/answer.h"
#include "actors/tasks/task_call.h"

namespace troupe::actors {

class TaskPool;

struct Task : TaskDispatch::Task {
  std::shared_ptr<TaskPool> pool;  // lives as long as a task of its own
  AnswerRef slot;
  TaskCall call;
  std::unique_ptr<CallHolds> over;  // objects it names, while a process of another host has it
  bool cancelled = false;
  TaskHistory::Ended ended;  // as far as it is known
  std::uint64_t later =
      0;  // the task's number while arguments are to come; then it does not wait for a process
  Task* older = nullptr;  // the pool's tasks, in the order they came
  Task* newer = nullptr;
};

/// Owns the tasks that are not over, in the order they came; each can be taken out from anywhere at
/// once.
class TaskList {
 public:
  TaskList() = default;
  TaskList(const TaskList&) = delete;
  TaskList& operator=(const TaskList&) = delete;
  ~TaskList() {
    while (oldest_ != nullptr) Remove(*oldest_);
  }

  Task& Add(std::unique_ptr<Task> task) {
    Task* const added = task.release();
    added->older = newest_;
    (newest_ != nullptr ? newest_->newer : oldest_) = added;
    newest_ = added;
    return *added;
  }
  std::unique_ptr<Task> Remove(Task& task) {
    (task.older != nullptr ? task.older->newer : oldest_) = task.newer;
    (task.newer != nullptr ? task.newer->older : newest_) = task.older;
    return std::unique_ptr<Task>(&task);
  }
  /// The others follow by `newer`.
  Task* oldest() const { return oldest_; }

 private:
  Task* oldest_ = nullptr;
  Task* newest_ = nullptr;
};

}  // namespace troupe::actors
