#include "actors/core/policy/task_dispatch.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace troupe::actors {

std::size_t TaskDispatch::Kind::depth() const {
  if (typical_ <= Duration::zero()) return 1;
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(kAhead / typical_, 1, static_cast<std::int64_t>(kDepthMax)));
}

/// The first of a process are slow for reasons that pass: what is less is believed sooner.
void TaskDispatch::Kind::Took(Duration each) {
  each = std::max(each, Duration(1));
  if (typical_ == Duration::zero()) {
    typical_ = each;
  } else if (each < typical_) {
    typical_ = (typical_ + each) / 2;
  } else {
    typical_ += (each - typical_) / 8;
  }
}

std::size_t TaskDispatch::DepthOf(const Task& task) {
  return task.alone || task.retries == 0 ? 1 : task.kind->depth();
}

bool TaskDispatch::Takes(const Lane& lane, const Task& task) {
  if (!lane.open || lane.paused) return false;
  return lane.tasks == 0 || (!lane.exclusive && lane.tasks < DepthOf(task));
}

void TaskDispatch::Put(LaneId id, Lane& lane, Task& task, Instant now) {
  if (lane.tasks == 0) {
    lane.since = now;
    lane.exclusive = DepthOf(task) == 1;
  }
  ++lane.tasks;
  task.lane = id;
}

LaneId TaskDispatch::Begin(Task& task, Instant now) {
  Lane* best = nullptr;
  LaneId best_id = 0;
  if (first_ == nullptr) {
    for (auto& [id, lane] : lanes_) {
      if (!Takes(lane, task) || (best != nullptr && lane.tasks >= best->tasks)) continue;
      best = &lane;
      best_id = id;
      if (lane.tasks == 0) break;
    }
  }
  if (best == nullptr) {
    LinkBefore(nullptr, task);
    if (first_new_ == nullptr) first_new_ = &task;
    return 0;
  }
  Put(best_id, *best, task, now);
  return best_id;
}

TaskDispatch::Task* TaskDispatch::Next(LaneId id, Instant now) {
  const auto found = lanes_.find(id);
  Task* const task = first_;
  if (task == nullptr || found == lanes_.end() || !Takes(found->second, *task)) return nullptr;
  Unlink(*task);
  Put(id, found->second, *task, now);
  return task;
}

std::vector<LaneId> TaskDispatch::Willing() const {
  std::vector<LaneId> willing;
  if (first_ == nullptr) return willing;
  for (const auto& [id, lane] : lanes_) {
    if (Takes(lane, *first_)) willing.push_back(id);
  }
  return willing;
}

Duration TaskDispatch::Answered(LaneId id, const std::vector<Task*>& tasks, Instant now,
                                bool lost) {
  const auto found = lanes_.find(id);
  if (found == lanes_.end() || tasks.empty()) return {};
  Lane& lane = found->second;
  const Duration each = (now - lane.since) / static_cast<std::int64_t>(tasks.size());
  for (Task* task : tasks) {
    if (!lost) task->kind->Took(each);
    task->lane = 0;
    --lane.tasks;
  }
  lane.since = now;
  return each;
}

void TaskDispatch::Again(Task& task) {
  task.alone = true;
  LinkBefore(first_new_, task);
}

void TaskDispatch::Undo(Task& task) {
  const auto found = lanes_.find(task.lane);
  if (found != lanes_.end()) --found->second.tasks;
  task.lane = 0;
  LinkBefore(first_, task);
}

void TaskDispatch::Drop(Task& task) {
  if (task.waits) Unlink(task);
}

std::vector<TaskDispatch::Task*> TaskDispatch::TakeAll() {
  std::vector<Task*> all;
  while (first_ != nullptr) {
    all.push_back(first_);
    Unlink(*first_);
  }
  return all;
}

void TaskDispatch::Open(LaneId lane, Instant now) { lanes_[lane].since = now; }

void TaskDispatch::Close(LaneId lane) {
  const auto found = lanes_.find(lane);
  if (found != lanes_.end()) found->second.open = false;
}

void TaskDispatch::Pause(LaneId lane, bool paused) {
  const auto found = lanes_.find(lane);
  if (found != lanes_.end()) found->second.paused = paused;
}

bool TaskDispatch::Forget(LaneId lane) {
  const auto found = lanes_.find(lane);
  if (found == lanes_.end()) return true;
  if (found->second.open || found->second.tasks != 0) return false;
  lanes_.erase(found);
  return true;
}

std::vector<TaskDispatch::LaneView> TaskDispatch::Lanes() const {
  std::vector<LaneView> views;
  for (const auto& [id, lane] : lanes_) views.push_back({id, lane.tasks, lane.open, lane.since});
  return views;
}

bool TaskDispatch::Idle(LaneId lane) const {
  const auto found = lanes_.find(lane);
  return found != lanes_.end() && found->second.open && !found->second.paused &&
         found->second.tasks == 0;
}

Duration TaskDispatch::Work() const {
  Duration work{};
  for (const Task* task = first_; task != nullptr; task = task->after) {
    const Duration typical = task->kind->typical();
    work += typical == Duration::zero() ? kUnknown : typical;
  }
  return work;
}

void TaskDispatch::LinkBefore(Task* place, Task& task) {
  TROUPE_CHECK(!task.waits, "a task that waits twice");
  task.waits = true;
  task.after = place;
  task.before = place != nullptr ? place->before : last_;
  (task.before != nullptr ? task.before->after : first_) = &task;
  (place != nullptr ? place->before : last_) = &task;
  ++waiting_;
}

void TaskDispatch::Unlink(Task& task) {
  if (first_new_ == &task) first_new_ = task.after;
  (task.before != nullptr ? task.before->after : first_) = task.after;
  (task.after != nullptr ? task.after->before : last_) = task.before;
  task.before = task.after = nullptr;
  task.waits = false;
  --waiting_;
}

}  // namespace troupe::actors
