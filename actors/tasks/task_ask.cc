// Requests about running tasks: their end, their items, their number.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "actors/net/now.h"
#include "actors/tasks/task_pool.h"

namespace troupe::actors {

TaskPool::Cancelled TaskPool::Cancel(Answer* slot, bool force, bool recursive, LaneId* lane) {
  std::shared_ptr<TaskPool> pool;
  {
    const MutexLock lock(mutex_);
    if (const Task* const task = TaskOf(*slot)) pool = task->pool;
  }
  if (pool == nullptr) return Cancelled::kOver;
  Step step(*pool);
  Task* const task = TaskOf(*slot);
  if (task == nullptr) return Cancelled::kOver;
  task->retries = 0;
  *lane = task->lane;
  if (!task->waits && task->later == 0) {
    task->cancelled = !force;
    if (task->lane != 0 && !force) pool->lanes_.At(task->lane).channel().Cancel(slot, recursive);
    return Cancelled::kAsked;
  }
  if (task->waits) pool->backlog_.Remove(task->call.values.size());
  pool->dispatch_.Drop(*task);
  pool->later_.erase(std::exchange(task->later, 0));
  task->cancelled = false;  // the answer says it
  ByteBuffer body;
  AppendRuntimeError(body, ErrorCode::kCancelled, "the task was cancelled before it began");
  pool->AnswerLocked(*task, kFlagReply | kFlagRuntimeError, body.view(), &step.finished);
  return Cancelled::kDropped;
}

/// Process-wide, never destroyed.
TaskChildren& TaskPool::ChildrenLocked() {
  static auto* const children = new TaskChildren;
  return *children;
}

std::vector<AnswerRef> TaskPool::Children(std::uint64_t parent) {
  const MutexLock lock(mutex_);
  return ChildrenLocked().Of(parent);
}

std::vector<TaskPool::Listed> TaskPool::List(std::size_t most) const {
  const MutexLock lock(mutex_);
  std::unordered_map<LaneId, std::uint64_t> first;  // calls of a lane run in their order
  for (const Task* task = tasks_.oldest(); task != nullptr; task = task->newer) {
    if (task->lane == 0) continue;
    std::uint64_t& call = first.try_emplace(task->lane, task->slot->call()).first->second;
    call = std::min(call, task->slot->call());
  }
  std::vector<Listed> listed;
  for (const Task* task = tasks_.oldest(); task != nullptr && listed.size() < most;
       task = task->newer) {
    Stage stage = task->later != 0 ? Stage::kArguments : Stage::kWaits;
    if (task->lane != 0)
      stage = first.at(task->lane) == task->slot->call() ? Stage::kRuns : Stage::kGiven;
    listed.push_back(
        {AnswerRef::Another(task->slot.get()), *task->call.function->name, stage, task->lane});
  }
  return listed;
}

std::vector<TaskHistory::Ended> TaskPool::LatestEnded(std::size_t most) {
  const MutexLock lock(mutex_);
  return HistoryLocked().Latest(most);
}

/// Process-wide, never destroyed.
TaskHistory& TaskPool::HistoryLocked() {
  static auto* const history = new TaskHistory;
  return *history;
}

void TaskPool::Taken(Answer* slot, std::uint64_t items) {
  const MutexLock lock(mutex_);
  Task* const task = TaskOf(*slot);
  if (task == nullptr || task->lane == 0) return;
  TaskPool& pool = *task->pool;
  pool.lanes_.At(task->lane).channel().Taken(task->slot.get(), items);
}

void TaskPool::FailWaiting(std::uint16_t flags, std::string_view body) {
  Step step(*this);
  for (TaskDispatch::Task* task : dispatch_.TakeAll()) {
    AnswerLocked(static_cast<Task&>(*task), flags, body, &step.finished);
  }
  for (const auto& [number, task] : std::exchange(later_, {})) {
    AnswerLocked(*task, flags, body, &step.finished);
  }
}

TaskPool::View TaskPool::Look() {
  const MutexLock lock(mutex_);
  return {dispatch_.Lanes(), dispatch_.waiting(), dispatch_.Work(), Now()};
}

void TaskPool::WakeAbove(std::int64_t waiting) {
  const Step step(*this);
  backlog_.WakeAbove(waiting);
}

void TaskPool::WakeAboveIdle(std::int64_t idle) {
  const Step step(*this);
  backlog_.WakeAboveIdle(idle);
  NoteIdleLocked();
}

void TaskPool::NoteIdleLocked() {
  if (!backlog_.counts_idle()) return;
  std::int64_t idle = 0;
  for (const auto& [id, lane] : lanes_.all()) idle += dispatch_.Idle(id) ? 1 : 0;
  backlog_.NoteIdle(idle);
}

}  // namespace troupe::actors
