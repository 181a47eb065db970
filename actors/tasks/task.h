// A task as its pool keeps it, from its beginning to its answer. Internal to TaskPool.
#pragma once

#include <memory>

#include "actors/caller/call_holds.h"
#include "actors/tasks/task_pool.h"

namespace troupe::actors {

struct TaskPool::Task : TaskDispatch::Task {
  std::shared_ptr<TaskPool> pool;
  Slot* slot = nullptr;  // one reference
  Call call;
  std::unique_ptr<CallHolds> over;  // what it names, while a process of another host has it
  bool cancelled = false;
  TaskHistory::Ended ended;  // as far as it is known
  std::uint64_t later = 0;  // its number while arguments are to come; then it is not in the line
  Task* older = nullptr;    // of its pool's tasks
  Task* newer = nullptr;
};

}  // namespace troupe::actors
