// Tasks whose arguments are to come: they begin when the last one is there, and end with the first that failed.
#include <mutex>
#include <utility>

#include "actors/caller/pending_arguments.h"
#include "actors/caller/reactor.h"
#include "actors/tasks/task.h"

namespace troupe::actors {

std::size_t TaskPool::held_back() const {
  const std::lock_guard lock(mutex_);
  return later_.size();
}

/// Its number; `*to_come`: the answers it waits for, one reference each.
std::uint64_t TaskPool::KeepBackLocked(Task& task, std::vector<Slot*>* to_come) {
  task.later = next_later_++;
  task.missing = task.call.to_come.size();
  later_.emplace(task.later, &task);
  for (const ArgumentToCome& each : task.call.to_come) {
    to_come->push_back(each.answer.get());
    to_come->back()->AddReference();
  }
  return task.later;
}

void TaskPool::AwaitArguments(std::uint64_t later, const std::vector<Slot*>& to_come) {
  CallReactor& reactor = CallReactor::Current();
  for (Slot* slot : to_come) {
    static_cast<void>(
        reactor.OnDone(slot, std::make_unique<ArgumentDone<TaskPool>>(shared_from_this(), later, SlotHold(slot))));
  }
}

void TaskPool::ArgumentHere(std::uint64_t later, const Slot& answer) {
  SlotList finished;
  bool wake;
  {
    const std::lock_guard lock(mutex_);
    const auto found = later_.find(later);
    if (found == later_.end()) return;  // cancelled, or another argument failed
    Task& task = *found->second;
    const bool failed = (answer.flags() & kErrorFlags) != 0;
    if (!failed && --task.missing != 0) return;
    later_.erase(found);
    task.later = 0;
    if (failed) {
      AnswerLocked(task, kFlagReply | kFlagOfArgument | (answer.flags() & kErrorFlags), answer.bytes(), &finished);
    } else if (FillInLocked(task, &finished)) {
      const LaneId lane = StartLocked(task);
      if (lane != 0) lanes_.at(lane).channel->Flush();
    }
    NoteWaitingLocked(&finished);
    wake = TakeWake();
  }
  Tell(finished, false);
  if (wake) wake_();
}

/// All its arguments are there. False: it was answered, for they cannot be sent.
bool TaskPool::FillInLocked(Task& task, SlotList* finished) {
  std::string values;
  std::size_t from = 0;
  bool good = true;
  for (const ArgumentToCome& each : task.call.to_come) {
    values.append(task.call.values, from, each.at - from);
    from = each.at;
    good = good && values_.AppendAnswer(*each.answer.get(), /*named_from=*/0, &values, &task.call.held);
  }
  values.append(task.call.values, from);
  task.call.to_come.clear();
  const std::size_t bytes = kFrameHeadBytes + sizeof(CallHead) + task.call.shape->names.size() + values.size();
  if (good && PaddedTo8(bytes) <= CallLimits().frame_bytes_max) {
    task.call.values = std::move(values);
    return true;
  }
  ByteBuffer body;
  AppendRuntimeError(body, good ? ErrorCode::kTooLarge : ErrorCode::kInternal,
                     good ? "the arguments of the task take more than one call may\n  pass large data in parts"
                          : "an argument of the task has an answer that is no value");
  AnswerLocked(task, kFlagReply | kFlagRuntimeError, body.view(), finished);
  return false;
}

}  // namespace troupe::actors
