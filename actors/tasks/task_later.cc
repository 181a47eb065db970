// Tasks whose arguments are to come: they begin when the last one is there, and end with the first
// that failed.
#include <utility>

#include "actors/caller/pending_arguments.h"
#include "actors/tasks/task_pool.h"

namespace troupe::actors {

std::size_t TaskPool::held_back() const {
  const MutexLock lock(mutex_);
  return later_.size();
}

void TaskPool::ArgumentHere(std::uint64_t later, const Answer& answer) {
  Step step(*this);
  const auto found = later_.find(later);
  if (found == later_.end()) return;  // cancelled, or another argument failed
  Task& task = *found->second;
  const PendingArguments::Came came = task.call.to_come.Note(answer);
  if (came == PendingArguments::Came::kOthersMissing) return;
  later_.erase(found);
  task.later = 0;
  if (came == PendingArguments::Came::kFailed) {
    AnswerLocked(task, FlagsOfFailedArgument(answer), answer.bytes(), &step.finished);
  } else if (FillInLocked(task, &step.finished)) {
    const LaneId lane = StartLocked(task);
    if (lane != 0) lanes_.At(lane).channel().Flush();
  }
}

/// All its arguments are there: named, for who runs it may be on this host. False: it was answered,
/// as they cannot be sent.
bool TaskPool::FillInLocked(Task& task, AnswerList* finished) {
  using Filled = PendingArguments::Filled;
  Call& call = task.call;
  const std::size_t beside = kFrameHeadBytes + sizeof(CallHead) + call.shape->names.size();
  const Filled filled =
      call.to_come.FillIn(PendingTarget::Place::kHere, beside, values_, &call.values, &call.held);
  if (filled == Filled::kGood) return true;
  const bool large = filled == Filled::kTooLarge;
  ByteBuffer body;
  AppendRuntimeError(body, large ? ErrorCode::kTooLarge : ErrorCode::kInternal,
                     large ? "the arguments of the task take more than one call may\n"
                             "  pass large data in parts"
                           : "an argument of the task has an answer that is no value");
  AnswerLocked(task, kFlagReply | kFlagRuntimeError, body.view(), finished);
  return false;
}

}  // namespace troupe::actors
