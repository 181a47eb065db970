#include "actors/core/policy/task_backlog.h"

#include <utility>

namespace troupe::actors {

void TaskBacklog::NoteIdle(std::int64_t idle) {
  if (wake_above_idle_ < 0 || idle <= wake_above_idle_) return;
  wake_above_idle_ = -1;
  wake_due_ = true;
}

bool TaskBacklog::TakeWake() { return std::exchange(wake_due_, false); }

TaskBacklog::Change TaskBacklog::Note(std::size_t waiting, std::size_t held_back) {
  Change change;
  if (waiting == 0) bytes_ = 0;
  if ((waiting != 0) != expects_) change.expects = expects_ = waiting != 0;
  if (wake_above_ >= 0 && waiting > static_cast<std::size_t>(wake_above_)) {
    wake_above_ = -1;
    wake_due_ = true;
  }
  change.room = waiting + held_back <= kTasksMax / 2 && bytes_ <= kBytesMax / 2;
  return change;
}

}  // namespace troupe::actors
