// The tasks that this process runs on processes of one kind: TaskDispatch decides which task goes
// where, TaskBacklog when there is room and when somebody is to look; this acts.
//
// A task is kept, encoded, until it is answered, so that it can be made again when its process is
// lost, without Python. What a lane answers sends it the next tasks, on the thread that read the
// answer. A function's definition precedes its first call on each lane. A task whose arguments are
// to come waits for them before it waits for a process; one of them that failed is its answer.
//
// Thread-safe: one lock for all pools of the process, taken before a channel's. Never blocks, runs
// no Python; `wake` is called without the lock and must do neither.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/caller/argument_codec.h"
#include "actors/caller/call_observer.h"
#include "actors/caller/channel.h"
#include "actors/caller/pending_arguments.h"
#include "actors/core/policy/task_backlog.h"
#include "actors/core/policy/task_dispatch.h"
#include "actors/core/policy/task_history.h"
#include "actors/slots/answer.h"
#include "actors/slots/room_waiters.h"
#include "actors/tasks/task.h"
#include "actors/tasks/task_call.h"
#include "actors/tasks/task_children.h"
#include "actors/tasks/task_lane.h"
#include "runtime/base/mutex.h"

namespace troupe::actors {

class TaskPool : public CallObserver,
                 public ArgumentKeeper,
                 public std::enable_shared_from_this<TaskPool> {
 public:
  using Function = TaskFunction;
  using Retried = TaskFunction::Retried;
  using Shape = TaskShape;
  using Call = TaskCall;

  /// `values` outlives all pools.
  TaskPool(std::function<void()> wake, const ArgumentCodec& values);
  ~TaskPool() override;
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  struct Begun {
    AnswerRef slot;
    LaneId lane;  // 0: it waits
  };
  Begun Begin(Call call);
  /// Too much waits.
  bool Full() const;
  /// An answer that is done when there is room for another task; empty: there is now.
  AnswerRef WhenRoom();

  /// A process that is there: `channel` was made with this as its observer, and gets nothing else
  /// to send.
  LaneId Open(std::shared_ptr<Channel> channel);
  /// Closes a lane to further tasks. True: it has none, and is forgotten.
  bool Close(LaneId lane);
  /// Stops further tasks for a lane, which is kept until Close.
  void Stop(LaneId lane);
  /// Calls a method of the process itself, without arguments, behind the tasks that are with it.
  /// The answer to come; empty: it cannot be asked any more.
  AnswerRef Ask(LaneId lane, std::string_view method);
  /// For a while it gets no more tasks.
  void Pause(LaneId lane, bool paused);
  /// Tasks that are with no process; those of them whose arguments are to come are counted apart.
  std::size_t waiting() const;
  std::size_t held_back() const;

  enum class Cancelled { kOver, kDropped, kAsked };
  /// Ends a task of any pool of this process, which is not made again. kAsked: a process has it
  /// (`*lane`), which was asked not to begin it, or is to be ended (`force`): then its end is the
  /// task's error. `recursive`: what it started is to be cancelled too, by its process.
  static Cancelled Cancel(Answer* slot, bool force, bool recursive, LaneId* lane);
  /// Tasks that `parent` started and that are not over, of all pools.
  static std::vector<AnswerRef> Children(std::uint64_t parent);
  /// So many items of a streaming task are taken, in all; see Channel::Taken.
  static void Taken(Answer* slot, std::uint64_t items);
  /// Ends all that waits, with this answer.
  void FailWaiting(std::uint16_t flags, std::string_view body);

  // The thing a task waits for: its arguments; a process; earlier tasks there; nothing.
  enum class Stage { kArguments, kWaits, kGiven, kRuns };
  struct Listed {
    AnswerRef slot;
    std::string name;
    Stage stage;
    LaneId lane;  // 0: none
  };
  /// The tasks that are not over, the oldest first, so many at most.
  std::vector<Listed> List(std::size_t most) const;

  /// The latest tasks of all pools of this process that are over, so many at most, the oldest of
  /// them first.
  static std::vector<TaskHistory::Ended> LatestEnded(std::size_t most);

  struct View {
    std::vector<TaskDispatch::LaneView> lanes;
    std::size_t waiting = 0;
    Duration work{};
    Instant now{};
  };
  View Look();
  /// `wake` is called once more than this many wait, once; -1: it is not.
  void WakeAbove(std::int64_t waiting);
  /// `wake` is called once more than this many processes that take tasks have none, once; -1: it is
  /// not.
  void WakeAboveIdle(std::int64_t idle);

  struct Doubtful {
    AnswerRef slot;
    std::uint64_t function;
  };
  /// Answers that raised and may be a reason to go again: that is for Judge to say.
  std::vector<Doubtful> TakeDoubtful();
  void Judge(Answer* slot, bool again);

  void Answered(std::uint64_t channel_id, std::vector<ObservedAnswer> answers,
                bool as_leader) override;

 private:
  class Step;

  static Task* TaskOf(const Answer& slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool SendLocked(Task& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillLaneLocked(LaneId lane, Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ArgumentHere(std::uint64_t later, const Answer& answer) override;
  bool FillInLocked(Task& task, AnswerList* finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LaneId StartLocked(Task& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SettleLocked(Task& task, ObservedAnswer::Lost lost, AnswerList* finished)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DeliverLocked(Task& task, AnswerList* finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerLocked(Task& task, std::uint16_t flags, std::string_view body, AnswerList* finished)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TryAgainLocked(Task& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteIdleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteWaitingLocked(AnswerList* finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::size_t KeptLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return dispatch_.waiting() + later_.size();
  }
  static void NoteEndedLocked(Task& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static LaneId NextLaneLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static TaskHistory& HistoryLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static TaskChildren& ChildrenLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Shared by all pools, so that a slot's task can be looked at whatever pool it is of.
  static Mutex mutex_;

  const std::function<void()> wake_;
  const ArgumentCodec& values_;
  TaskDispatch dispatch_ ABSL_GUARDED_BY(mutex_);
  TaskBacklog backlog_ ABSL_GUARDED_BY(mutex_);
  TaskLanes lanes_ ABSL_GUARDED_BY(mutex_);
  TaskList tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Task*> later_ ABSL_GUARDED_BY(mutex_);  // arguments are to come
  std::uint64_t next_later_ ABSL_GUARDED_BY(mutex_) = 1;
  RoomWaiters room_ ABSL_GUARDED_BY(mutex_);
  std::vector<Doubtful> doubtful_ ABSL_GUARDED_BY(mutex_);
  std::vector<TaskDispatch::Task*> answered_ ABSL_GUARDED_BY(mutex_);  // scratch
};

/// A change of a pool, under the lock. At its end, without the lock, waiting threads learn of
/// `finished`, and the leasing thread is woken if that is due. The pool lives longer.
class ABSL_SCOPED_LOCKABLE TaskPool::Step {
 public:
  explicit Step(TaskPool& pool, bool as_leader = false) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex_)
      : pool_(pool), as_leader_(as_leader) {
    mutex_.Lock();
  }
  ~Step() ABSL_UNLOCK_FUNCTION();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  AnswerList finished;

 private:
  TaskPool& pool_;
  const bool as_leader_;
};

}  // namespace troupe::actors
