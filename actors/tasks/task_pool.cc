#include "actors/tasks/task_pool.h"

#include <algorithm>
#include <utility>

#include "actors/caller/reactor.h"
#include "actors/net/now.h"
#include "runtime/obs/trace.h"

namespace troupe::actors {

Mutex TaskPool::mutex_;

TaskPool::TaskPool(std::function<void()> wake, const ArgumentCodec& values)
    : wake_(std::move(wake)), values_(values) {}

TaskPool::~TaskPool() = default;  // a task keeps its pool

TaskPool::Step::~Step() {
  pool_.NoteWaitingLocked(&finished);
  const bool wake = pool_.backlog_.TakeWake();
  mutex_.Unlock();
  CallReactor::Current().NotifyAll(finished, as_leader_);
  if (wake) pool_.wake_();
}

Task* TaskPool::TaskOf(const Answer& slot) { return static_cast<Task*>(slot.observed); }

namespace {

/// The slots of several values lead to their task as the call's does.
void ObserveItems(Task& task, bool on) {
  if (task.call.items == nullptr) return;
  for (std::uint32_t i = 0; i < task.call.items->count(); ++i) {
    const AnswerRef slot = task.call.items->At(i);
    slot->observed = on ? &task : nullptr;
  }
}

}  // namespace

TaskPool::Begun TaskPool::Begin(Call call) {
  auto made = std::make_unique<Task>();
  AnswerRef slot(Answer::New(CallReactor::Current().NextLocalId()));
  slot->observed = made.get();
  made->pool = shared_from_this();
  made->slot = AnswerRef::Another(slot.get());
  made->kind = &call.function->kind;
  made->retries = call.function->retries;
  made->call = std::move(call);
  std::vector<AnswerRef> to_come = made->call.to_come.Answers();
  LaneId lane = 0;
  std::uint64_t later = 0;
  {
    const Step step(*this);
    Task& task = tasks_.Add(std::move(made));
    ObserveItems(task, true);
    ChildrenLocked().Add(task.call.parent, slot.get());
    if (to_come.empty()) {
      lane = StartLocked(task);
    } else {
      later = task.later = next_later_++;
      later_.emplace(later, &task);
    }
  }
  if (!to_come.empty()) AwaitArguments(shared_from_this(), later, std::move(to_come));
  return {std::move(slot), lane};
}

/// The lane that it is with; 0: it waits.
LaneId TaskPool::StartLocked(Task& task) {
  const LaneId lane = dispatch_.Begin(task, Now());
  if (lane != 0 && SendLocked(task)) return lane;
  backlog_.Add(task.call.values.size());
  return 0;
}

bool TaskPool::Full() const {
  const MutexLock lock(mutex_);
  return backlog_.Full(KeptLocked());
}

AnswerRef TaskPool::WhenRoom() {
  const MutexLock lock(mutex_);
  return backlog_.Full(KeptLocked()) ? room_.Wait() : AnswerRef();
}

/// Reports a change of the waiting tasks.
void TaskPool::NoteWaitingLocked(AnswerList* finished) {
  const TaskBacklog::Change change = backlog_.Note(dispatch_.waiting(), later_.size());
  if (change.expects) CallReactor::Current().Expect(*change.expects);
  if (change.room) room_.Open(finished);
}

// ---- to the processes ------------------------------------------------------------------------

LaneId TaskPool::NextLaneLocked() {
  static LaneId next_lane = 1;
  return next_lane++;
}

LaneId TaskPool::Open(std::shared_ptr<Channel> channel) {
  const Step step(*this);
  const LaneId id = NextLaneLocked();
  lanes_.Add(id, std::move(channel));
  const Instant now = Now();
  dispatch_.Open(id, now);
  FillLaneLocked(id, now);
  return id;
}

bool TaskPool::Close(LaneId id) {
  std::shared_ptr<Channel> last;  // released without the lock
  const MutexLock lock(mutex_);
  if (lanes_.Find(id) == nullptr) return true;
  dispatch_.Close(id);
  if (!dispatch_.Forget(id)) return false;
  last = lanes_.Remove(id);
  return true;
}

void TaskPool::Stop(LaneId lane) {
  const MutexLock lock(mutex_);
  dispatch_.Close(lane);
}

AnswerRef TaskPool::Ask(LaneId id, std::string_view method) {
  const MutexLock lock(mutex_);
  TaskLane* const lane = lanes_.Find(id);
  return lane != nullptr ? lane->Ask(method) : AnswerRef();
}

void TaskPool::Pause(LaneId lane, bool paused) {
  const Step step(*this);
  dispatch_.Pause(lane, paused);
  if (!paused) FillLaneLocked(lane, Now());
}

std::size_t TaskPool::waiting() const {
  const MutexLock lock(mutex_);
  return dispatch_.waiting();
}

/// To the lane that it is with. False: it waits again.
bool TaskPool::SendLocked(Task& task) {
  using Sent = TaskLane::Sent;
  const LaneId id = task.lane;
  const Sent sent = lanes_.At(id).Send(task.call, task.slot.get(), values_, &task.over);
  const bool went = sent == Sent::kYes || sent == Sent::kLast;
  if (!went) dispatch_.Undo(task);
  if (sent == Sent::kLast || sent == Sent::kNever) {
    dispatch_.Close(id);
    backlog_.Wake();
  }
  return went;
}

void TaskPool::FillLaneLocked(LaneId id, Instant now) {
  bool any = false;
  while (TaskDispatch::Task* next = dispatch_.Next(id, now)) {
    Task& task = static_cast<Task&>(*next);
    if (!SendLocked(task)) break;
    backlog_.Remove(task.call.values.size());
    any = true;
  }
  if (any) lanes_.At(id).channel().Flush();
}

void TaskPool::FillAllLocked() {
  const Instant now = Now();
  for (const LaneId lane : dispatch_.Willing()) FillLaneLocked(lane, now);
}

// ---- from the processes ----------------------------------------------------------------------

void TaskPool::Answered(std::uint64_t channel_id, std::vector<ObservedAnswer> answers,
                        bool as_leader) {
  const std::shared_ptr<TaskPool> self = shared_from_this();
  Step step(*this, as_leader);
  const LaneId lane = lanes_.OfChannel(channel_id);
  const Instant now = Now();
  answered_.clear();
  bool lost = false;
  for (const ObservedAnswer& answer : answers) {
    lost = lost || answer.lost != ObservedAnswer::Lost::kNo;
    if (Task* const task = TaskOf(*answer.slot)) answered_.push_back(task);
  }
  const Duration each = dispatch_.Answered(lane, answered_, now, lost);
  Instant at = now - each * static_cast<std::int64_t>(answered_.size());
  for (TaskDispatch::Task* answered : answered_) {
    static_cast<Task*>(answered)->ended = {0, nullptr, lane, at += each, each, false};
  }
  if (lost) {
    dispatch_.Close(lane);
    backlog_.Wake();
  }
  for (ObservedAnswer& answer : answers) {
    Task* const task = TaskOf(*answer.slot);
    if (task == nullptr) {
      FinishInto(std::move(answer.slot), &step.finished);  // answer to Ask, or to a definition
    } else {
      answer.slot = AnswerRef();  // the channel's reference; the task has another
      SettleLocked(*task, answer.lost, &step.finished);
    }
  }
  if (lost) {
    FillAllLocked();
  } else {
    FillLaneLocked(lane, now);
  }
  if (dispatch_.Idle(lane)) NoteIdleLocked();
}

/// Settles a task whose slot is filled: with the task's answer, or by sending it again.
void TaskPool::SettleLocked(Task& task, ObservedAnswer::Lost lost, AnswerList* finished) {
  const std::uint16_t flags = task.slot->flags();
  task.over.reset();
  if (lost == ObservedAnswer::Lost::kNotSent && !task.cancelled) {
    if (task.retries >= 0) ++task.retries;  // the task did not begin: nothing is counted
    TryAgainLocked(task);
    return;
  }
  if (lost == ObservedAnswer::Lost::kMaybeExecuted) {
    if (!TryAgainLocked(task)) DeliverLocked(task, finished);
    return;
  }
  if ((flags & kFlagTaskError) != 0 && task.retries != 0 && !task.cancelled) {
    const Retried retried = task.call.function->retried;
    if (retried == Retried::kAll && TryAgainLocked(task)) return;
    if (retried == Retried::kSome) {
      doubtful_.push_back({AnswerRef::Another(task.slot.get()), task.call.function->number});
      backlog_.Wake();
      return;
    }
  }
  DeliverLocked(task, finished);
}

/// False: it has gone as often as it may.
bool TaskPool::TryAgainLocked(Task& task) {
  if (task.retries == 0 || task.cancelled) return false;
  if (task.retries > 0) --task.retries;
  task.slot->Unfill();
  task.ended = {};
  if (task.call.items != nullptr) task.call.items->Again();
  dispatch_.Again(task);
  backlog_.Add(task.call.values.size());
  return true;
}

void TaskPool::DeliverLocked(Task& task, AnswerList* finished) {
  Answer* const slot = task.slot.get();
  if (task.cancelled && (slot->flags() & kErrorFlags) != 0) {
    ByteBuffer body;
    AppendRuntimeError(body, ErrorCode::kCancelled, "the task was cancelled");
    slot->Unfill();
    slot->Fill(kFlagReply | kFlagRuntimeError, body.view());
  }
  NoteEndedLocked(task);
  if (task.call.items != nullptr) task.call.items->End(slot->flags(), slot->bytes(), finished);
  ObserveItems(task, false);
  ChildrenLocked().Remove(task.call.parent, slot);
  slot->observed = nullptr;
  FinishInto(std::move(task.slot), finished);
  tasks_.Remove(task);
}

void TaskPool::NoteEndedLocked(Task& task) {
  TaskHistory::Ended& ended = task.ended;
  ended.id = task.slot->id();
  ended.name = task.call.function->name;
  ended.failed = (task.slot->flags() & kErrorFlags) != 0;
  if (ended.ended == Instant{}) ended.ended = Now();  // the task was not given to any process
  if (ended.lane != 0) {
    obs::Span span;
    span.kind = obs::SpanKind::kTask;
    span.begin = ended.ended - ended.took;
    span.end = ended.ended;
    span.name = *ended.name;
    span.value = ended.failed ? 1 : 0;
    span.track = static_cast<std::uint32_t>(ended.lane);
    obs::AddSpan(span);
  }
  HistoryLocked().Add(std::move(ended));
}

void TaskPool::AnswerLocked(Task& task, std::uint16_t flags, std::string_view body,
                            AnswerList* finished) {
  task.slot->Unfill();
  task.slot->Fill(flags, body);
  DeliverLocked(task, finished);
}

std::vector<TaskPool::Doubtful> TaskPool::TakeDoubtful() {
  const MutexLock lock(mutex_);
  return std::exchange(doubtful_, {});
}

void TaskPool::Judge(Answer* slot, bool again) {
  Step step(*this);
  Task* const task = TaskOf(*slot);
  if (task == nullptr) return;
  if (again && TryAgainLocked(*task)) {
    FillAllLocked();
  } else {
    DeliverLocked(*task, &step.finished);
  }
}

}  // namespace troupe::actors
