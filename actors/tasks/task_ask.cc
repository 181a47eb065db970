// What is asked of tasks that are under way: their end, their items, how many there are.
#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "actors/net/now.h"
#include "actors/tasks/task.h"

namespace troupe::actors {
namespace {

/// The answers of tasks that a task started, by that one; of all pools. Guarded by TaskPool::mutex_.
std::unordered_multimap<std::uint64_t, Slot*>& Started() {
  static auto* const started = new std::unordered_multimap<std::uint64_t, Slot*>;
  return *started;
}

}  // namespace

TaskPool::Cancelled TaskPool::Cancel(Slot* slot, bool force, bool recursive, LaneId* lane) {
  SlotList finished;
  std::shared_ptr<TaskPool> pool;
  Cancelled cancelled = Cancelled::kAsked;
  {
    const std::lock_guard lock(mutex_);
    auto* task = static_cast<Task*>(slot->observed);
    if (task == nullptr) return Cancelled::kOver;
    pool = task->pool;
    task->retries = 0;
    const bool waits = task->waits || task->later != 0;
    task->cancelled = !force || waits;
    *lane = task->lane;
    if (waits) {
      pool->line_.Drop(*task);
      pool->later_.erase(std::exchange(task->later, 0));
      task->cancelled = false;  // the answer says it
      ByteBuffer body;
      AppendRuntimeError(body, ErrorCode::kCancelled, "the task was cancelled before it began");
      pool->AnswerLocked(*task, kFlagReply | kFlagRuntimeError, body.view(), &finished);
      pool->NoteWaitingLocked(&finished);
      cancelled = Cancelled::kDropped;
    } else if (task->lane != 0 && !force) {
      pool->lanes_.at(task->lane).channel->Cancel(task->slot, recursive);
    }
  }
  pool->Tell(finished, false);
  return cancelled;
}

void TaskPool::NoteParent(const Task& task, bool on) {
  if (task.call.parent == 0) return;
  if (on) {
    Started().emplace(task.call.parent, task.slot);
    return;
  }
  const auto [first, last] = Started().equal_range(task.call.parent);
  const auto found = std::find_if(first, last, [&](const auto& each) { return each.second == task.slot; });
  if (found != last) Started().erase(found);
}

std::vector<Slot*> TaskPool::Children(std::uint64_t parent) {
  const std::lock_guard lock(mutex_);
  std::vector<Slot*> slots;
  const auto [first, last] = Started().equal_range(parent);
  for (auto each = first; each != last; ++each) {
    slots.push_back(each->second);
    slots.back()->AddReference();
  }
  return slots;
}

std::vector<TaskPool::Listed> TaskPool::List(std::size_t most) const {
  const std::lock_guard lock(mutex_);
  std::unordered_map<LaneId, std::uint64_t> first;  // calls of a lane run in their order
  for (const Task* task = oldest_; task != nullptr; task = task->newer) {
    if (task->lane == 0) continue;
    std::uint64_t& call = first.try_emplace(task->lane, task->slot->call()).first->second;
    call = std::min(call, task->slot->call());
  }
  std::vector<Listed> listed;
  for (const Task* task = oldest_; task != nullptr && listed.size() < most; task = task->newer) {
    Stage stage = task->later != 0 ? Stage::kArguments : Stage::kWaits;
    if (task->lane != 0) stage = first.at(task->lane) == task->slot->call() ? Stage::kRuns : Stage::kGiven;
    task->slot->AddReference();
    listed.push_back({task->slot, *task->call.function->name, stage, task->lane});
  }
  return listed;
}

std::vector<TaskHistory::Ended> TaskPool::LatestEnded(std::size_t most) {
  const std::lock_guard lock(mutex_);
  return HistoryLocked().Latest(most);
}

/// Of the whole process, and as long as it.
TaskHistory& TaskPool::HistoryLocked() {
  static auto* const history = new TaskHistory;
  return *history;
}

void TaskPool::Taken(Slot* slot, std::uint64_t items) {
  const std::lock_guard lock(mutex_);
  auto* task = static_cast<Task*>(slot->observed);
  if (task == nullptr || task->lane == 0) return;
  task->pool->lanes_.at(task->lane).channel->Taken(task->slot, items);
}

void TaskPool::FailWaiting(std::uint16_t flags, std::string_view body) {
  SlotList finished;
  {
    const std::lock_guard lock(mutex_);
    for (TaskDispatch::Task* task : line_.TakeAll()) {
      AnswerLocked(static_cast<Task&>(*task), flags, body, &finished);
    }
    for (const auto& [number, task] : std::exchange(later_, {})) AnswerLocked(*task, flags, body, &finished);
    NoteWaitingLocked(&finished);
  }
  Tell(finished, false);
}

TaskPool::View TaskPool::Look() {
  const std::lock_guard lock(mutex_);
  return {line_.Lanes(), line_.waiting(), line_.Work(), Now()};
}

void TaskPool::WakeAbove(std::int64_t waiting) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    wake_above_ = waiting;
    wake = waiting >= 0 && line_.waiting() > static_cast<std::size_t>(waiting);
    if (wake) wake_above_ = -1;
  }
  if (wake) wake_();
}

void TaskPool::WakeAboveIdle(std::int64_t idle) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    wake_above_idle_ = idle;
    wake = TooIdleLocked();
  }
  if (wake) wake_();
}

/// True once.
bool TaskPool::TooIdleLocked() {
  if (wake_above_idle_ < 0) return false;
  const auto idle = std::count_if(lanes_.begin(), lanes_.end(), [this](const auto& lane) { return line_.Idle(lane.first); });
  if (idle <= wake_above_idle_) return false;
  wake_above_idle_ = -1;
  return true;
}

}  // namespace troupe::actors
