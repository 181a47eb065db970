#include "actors/task_pool.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "actors/now.h"
#include "actors/reactor.h"

namespace troupe::actors {
namespace {

/// Of all pools, so that a slot's task can be looked at whatever pool it is of.
std::mutex mutex;
LaneId next_lane = 1;

constexpr std::uint16_t kErrors = kFlagTaskError | kFlagRuntimeError;

}  // namespace

struct TaskPool::Task : TaskLine::Task {
  std::shared_ptr<TaskPool> pool;
  Slot* slot = nullptr;  // one reference
  Call call;
  bool cancelled = false;
};

std::uint64_t TaskPool::NewId() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

TaskPool::TaskPool(std::function<void()> wake) : wake_(std::move(wake)) {}

TaskPool::~TaskPool() = default;  // a task keeps its pool

TaskPool::Begun TaskPool::Begin(Call call) {
  CallReactor& reactor = CallReactor::Current();
  auto* task = new Task;
  task->pool = shared_from_this();
  task->slot = Slot::New(reactor.NextLocalId());
  Slot* const slot = task->slot;
  slot->AddReference();
  slot->observed = task;
  task->kind = &call.function->kind;
  task->retries = call.function->retries;
  task->call = std::move(call);
  SlotList finished;
  LaneId lane;
  bool wake;
  {
    const std::lock_guard lock(mutex);
    ObserveItems(*task, true);
    lane = line_.Begin(*task, Now());
    if (lane != 0 && SendLocked(*task) != Sent::kYes) lane = 0;
    if (lane == 0) waiting_bytes_ += task->call.values.size();
    NoteWaitingLocked(&finished);
    wake = TakeWake();
  }
  Tell(finished, false);
  if (wake) wake_();
  return {slot, lane};
}

bool TaskPool::Full() const {
  const std::lock_guard lock(mutex);
  return line_.waiting() >= kWaitingMax || waiting_bytes_ >= kWaitingBytesMax;
}

Slot* TaskPool::WhenRoom() {
  const std::lock_guard lock(mutex);
  if (line_.waiting() < kWaitingMax && waiting_bytes_ < kWaitingBytesMax) return nullptr;
  Slot* slot = Slot::New(0);
  slot->AddReference();
  room_waiters_.push_back(slot);
  return slot;
}

/// What waits has changed.
void TaskPool::NoteWaitingLocked(SlotList* finished) {
  const std::size_t waiting = line_.waiting();
  if (waiting == 0) waiting_bytes_ = 0;
  if ((waiting != 0) != expecting_) {
    expecting_ = waiting != 0;  // answers must be read although nobody waits for one
    CallReactor::Current().Expect(expecting_);
  }
  if (wake_above_ >= 0 && waiting > static_cast<std::size_t>(wake_above_)) {
    wake_above_ = -1;
    wake_due_ = true;
  }
  if (room_waiters_.empty() || waiting > kWaitingMax / 2 || waiting_bytes_ > kWaitingBytesMax / 2) return;
  for (Slot* slot : room_waiters_) FinishInto(slot, finished);
  room_waiters_.clear();
}

bool TaskPool::TakeWake() { return std::exchange(wake_due_, false); }

void TaskPool::Tell(const SlotList& finished, bool as_leader) {
  CallReactor::Current().NotifyAll(finished, as_leader);
}

// ---- to the processes ------------------------------------------------------------------------

LaneId TaskPool::Open(std::shared_ptr<Channel> channel) {
  SlotList finished;
  LaneId id;
  bool wake;
  {
    const std::lock_guard lock(mutex);
    id = next_lane++;
    by_channel_[channel->id()] = id;
    lanes_[id].channel = std::move(channel);
    const Instant now = Now();
    line_.Open(id, now);
    FillLaneLocked(id, now);
    NoteWaitingLocked(&finished);
    wake = TakeWake();
  }
  Tell(finished, false);
  if (wake) wake_();
  return id;
}

bool TaskPool::Close(LaneId id) {
  std::shared_ptr<Channel> last;  // released without the lock
  const std::lock_guard lock(mutex);
  const auto found = lanes_.find(id);
  if (found == lanes_.end()) return true;
  line_.Close(id);
  if (!line_.Forget(id)) return false;
  by_channel_.erase(found->second.channel->id());
  last = std::move(found->second.channel);
  lanes_.erase(found);
  return true;
}

void TaskPool::Pause(LaneId lane, bool paused) {
  SlotList finished;
  bool wake;
  {
    const std::lock_guard lock(mutex);
    line_.Pause(lane, paused);
    if (!paused) FillLaneLocked(lane, Now());
    NoteWaitingLocked(&finished);
    wake = TakeWake();
  }
  Tell(finished, false);
  if (wake) wake_();
}

std::size_t TaskPool::waiting() const {
  const std::lock_guard lock(mutex);
  return line_.waiting();
}

/// To the lane that it is with. Not kYes: it waits again.
TaskPool::Sent TaskPool::SendLocked(Task& task) {
  Lane& lane = lanes_.at(task.lane);
  const LaneId id = task.lane;
  const Function& function = *task.call.function;
  Sent sent = Sent::kYes;
  if (DefineLocked(lane, function, &sent)) {
    const Shape* shape = task.call.shape;
    const auto known = lane.shapes.find(shape->id);
    const bool named = known == lane.shapes.end();
    CallHead head;
    const bool room = lane.shapes.size() < CallLimits().shapes_max;
    head.shape = !named ? known->second : room ? static_cast<std::uint16_t>(lane.shapes.size()) : kNoShape;
    head.arg_count = task.call.argument_count;
    head.keyword_count = shape->keyword_count;
    char space[512];
    ByteBuffer frame(space, sizeof space);
    frame.Extend(kFrameHeadBytes);
    frame.AppendValue(head);
    if (named) frame.Append(shape->names.data(), shape->names.size());
    frame.Append(task.call.values.data(), task.call.values.size());
    sent = IssueLocked(lane, frame, named ? kFlagNamed : kFlagNone, task.slot, task.call.items);
    if (sent == Sent::kYes && named && room) lane.shapes.emplace(shape->id, head.shape);
  }
  if (sent == Sent::kYes) {
    if (task.call.items != nullptr) {
      const std::uint64_t taken = task.call.items->taken().items;
      if (taken != 0) lane.channel->Taken(task.slot, taken);
    }
    if (function.calls_max == 0 || ++lane.functions[function.id] < function.calls_max) return sent;
    line_.Close(id);
    wake_due_ = true;
    return sent;
  }
  line_.Undo(task);
  if (sent == Sent::kNever) {
    line_.Close(id);
    wake_due_ = true;
  }
  return sent;
}

/// The lane knows the function.
bool TaskPool::DefineLocked(Lane& lane, const Function& function, Sent* why) {
  if (lane.functions.contains(function.id)) return true;
  ByteBuffer frame;
  frame.Extend(kFrameHeadBytes);
  CallHead head;
  head.arg_count = function.definition_arguments;
  frame.AppendValue(head);
  frame.AppendValue(static_cast<std::uint16_t>(kDefine.size()));
  frame.Append(kDefine.data(), kDefine.size());
  frame.Append(function.definition.data(), function.definition.size());
  const SlotHold slot(Slot::New(CallReactor::Current().NextLocalId()));
  *why = IssueLocked(lane, frame, kFlagNamed, slot.get(), nullptr);
  if (*why != Sent::kYes) return false;
  lane.functions.emplace(function.id, 0);
  return true;
}

TaskPool::Sent TaskPool::IssueLocked(Lane& lane, ByteBuffer& frame, std::uint16_t flags, Slot* slot,
                                     std::shared_ptr<ItemStream> items) {
  switch (lane.channel->IssueInto(frame, flags, slot, std::move(items))) {
    case Channel::Issued::kFull:
      return Sent::kLater;  // its next answer makes room
    case Channel::Issued::kEnded:
    case Channel::Issued::kTooMany:
      return Sent::kNever;
    case Channel::Issued::kOk:
    case Channel::Issued::kOkDrain:
      break;
  }
  return Sent::kYes;
}

void TaskPool::FillLaneLocked(LaneId id, Instant now) {
  bool any = false;
  while (TaskLine::Task* next = line_.Next(id, now)) {
    Task& task = static_cast<Task&>(*next);
    if (SendLocked(task) != Sent::kYes) break;
    waiting_bytes_ -= std::min(waiting_bytes_, task.call.values.size());
    any = true;
  }
  if (any) lanes_.at(id).channel->Flush();
}

void TaskPool::FillAllLocked() {
  const Instant now = Now();
  for (const LaneId lane : line_.Willing()) FillLaneLocked(lane, now);
}

// ---- from the processes ----------------------------------------------------------------------

void TaskPool::Answered(std::uint64_t channel_id, const std::vector<ObservedAnswer>& answers,
                        bool as_leader) {
  const std::shared_ptr<TaskPool> self = shared_from_this();
  SlotList finished;
  bool wake;
  {
    const std::lock_guard lock(mutex);
    const auto found = by_channel_.find(channel_id);
    const LaneId lane = found != by_channel_.end() ? found->second : 0;
    const Instant now = Now();
    answered_.clear();
    bool lost = false;
    for (const ObservedAnswer& answer : answers) {
      lost = lost || answer.lost != ObservedAnswer::Lost::kNo;
      if (answer.slot->observed != nullptr) answered_.push_back(static_cast<Task*>(answer.slot->observed));
    }
    line_.Answered(lane, answered_, now, lost);
    if (lost) {
      line_.Close(lane);
      wake_due_ = true;
    }
    for (const ObservedAnswer& answer : answers) {
      auto* task = static_cast<Task*>(answer.slot->observed);
      answer.slot->Release();  // the channel's; the task has another
      if (task != nullptr) SettleLocked(*task, answer.lost, &finished);
    }
    if (lost) {
      FillAllLocked();
    } else {
      FillLaneLocked(lane, now);
    }
    NoteWaitingLocked(&finished);
    wake = TakeWake();
  }
  Tell(finished, as_leader);
  if (wake) wake_();
}

/// Its slot is filled: that is the task's answer, or it goes again.
void TaskPool::SettleLocked(Task& task, ObservedAnswer::Lost lost, SlotList* finished) {
  const std::uint16_t flags = task.slot->flags();
  if (lost == ObservedAnswer::Lost::kNotSent && !task.cancelled) {
    if (task.retries >= 0) ++task.retries;  // it did not begin: nothing is counted
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
      task.slot->AddReference();
      doubtful_.push_back({task.slot, task.call.function->number});
      wake_due_ = true;
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
  if (task.call.items != nullptr) task.call.items->Again();
  line_.Again(task);
  waiting_bytes_ += task.call.values.size();
  return true;
}

void TaskPool::DeliverLocked(Task& task, SlotList* finished) {
  Slot* const slot = task.slot;
  if (task.cancelled && (slot->flags() & kErrors) != 0) {
    ByteBuffer body;
    AppendRuntimeError(body, ErrorCode::kCancelled, "the task was cancelled");
    slot->Unfill();
    slot->Fill(kFlagReply | kFlagRuntimeError, body.view());
  }
  if (task.call.items != nullptr) task.call.items->End(slot->flags(), slot->bytes(), finished);
  ObserveItems(task, false);
  slot->observed = nullptr;
  FinishInto(slot, finished);
  delete &task;
}

void TaskPool::AnswerLocked(Task& task, std::uint16_t flags, std::string_view body, SlotList* finished) {
  task.slot->Unfill();
  task.slot->Fill(flags, body);
  DeliverLocked(task, finished);
}

/// The slots of several values lead to their task as the call's does.
void TaskPool::ObserveItems(Task& task, bool on) {
  if (task.call.items == nullptr) return;
  for (std::uint32_t i = 0; i < task.call.items->count(); ++i) {
    const SlotHold slot(task.call.items->At(i));
    slot.get()->observed = on ? &task : nullptr;
  }
}

std::vector<TaskPool::Doubtful> TaskPool::TakeDoubtful() {
  const std::lock_guard lock(mutex);
  return std::exchange(doubtful_, {});
}

void TaskPool::Judge(Slot* slot, bool again) {
  SlotList finished;
  bool wake;
  {
    const std::lock_guard lock(mutex);
    auto* task = static_cast<Task*>(slot->observed);
    if (task == nullptr) return;
    if (again && TryAgainLocked(*task)) {
      FillAllLocked();
    } else {
      DeliverLocked(*task, &finished);
    }
    NoteWaitingLocked(&finished);
    wake = TakeWake();
  }
  Tell(finished, false);
  if (wake) wake_();
}

// ---- what is asked ---------------------------------------------------------------------------

TaskPool::Cancelled TaskPool::Cancel(Slot* slot, bool force, LaneId* lane) {
  SlotList finished;
  std::shared_ptr<TaskPool> pool;
  Cancelled cancelled = Cancelled::kAsked;
  {
    const std::lock_guard lock(mutex);
    auto* task = static_cast<Task*>(slot->observed);
    if (task == nullptr) return Cancelled::kOver;
    pool = task->pool;
    task->retries = 0;
    task->cancelled = !force || task->waits;
    *lane = task->lane;
    if (task->waits) {
      pool->line_.Drop(*task);
      task->cancelled = false;  // the answer says it
      ByteBuffer body;
      AppendRuntimeError(body, ErrorCode::kCancelled, "the task was cancelled before it began");
      pool->AnswerLocked(*task, kFlagReply | kFlagRuntimeError, body.view(), &finished);
      pool->NoteWaitingLocked(&finished);
      cancelled = Cancelled::kDropped;
    } else if (task->lane != 0 && !force) {
      pool->lanes_.at(task->lane).channel->Cancel(task->slot);
    }
  }
  pool->Tell(finished, false);
  return cancelled;
}

void TaskPool::Taken(Slot* slot, std::uint64_t items) {
  const std::lock_guard lock(mutex);
  auto* task = static_cast<Task*>(slot->observed);
  if (task == nullptr || task->lane == 0) return;
  task->pool->lanes_.at(task->lane).channel->Taken(task->slot, items);
}

void TaskPool::FailWaiting(std::uint16_t flags, std::string_view body) {
  SlotList finished;
  {
    const std::lock_guard lock(mutex);
    for (TaskLine::Task* task : line_.TakeAll()) {
      AnswerLocked(static_cast<Task&>(*task), flags, body, &finished);
    }
    NoteWaitingLocked(&finished);
  }
  Tell(finished, false);
}

TaskPool::View TaskPool::Look() {
  const std::lock_guard lock(mutex);
  return {line_.Lanes(), line_.waiting(), line_.Work(), Now()};
}

void TaskPool::WakeAbove(std::int64_t waiting) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex);
    wake_above_ = waiting;
    wake = waiting >= 0 && line_.waiting() > static_cast<std::size_t>(waiting);
    if (wake) wake_above_ = -1;
  }
  if (wake) wake_();
}

}  // namespace troupe::actors
