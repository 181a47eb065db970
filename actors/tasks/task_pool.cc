#include "actors/tasks/task_pool.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "actors/net/now.h"
#include "actors/caller/reactor.h"
#include "actors/tasks/task.h"

namespace troupe::actors {
namespace {

LaneId next_lane = 1;

}  // namespace

std::mutex TaskPool::mutex_;

std::uint64_t TaskPool::NewId() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

TaskPool::TaskPool(std::function<void()> wake, const ArgumentCodec& values)
    : wake_(std::move(wake)), values_(values) {}

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
  LaneId lane = 0;
  bool wake;
  std::vector<SlotHold> to_come = task->call.to_come.Answers();
  std::uint64_t later = 0;
  {
    const std::lock_guard lock(mutex_);
    ObserveItems(*task, true);
    NoteParent(*task, true);
    LinkLocked(*task);
    if (to_come.empty()) {
      lane = StartLocked(*task);
    } else {
      later = task->later = next_later_++;
      later_.emplace(later, task);
    }
    NoteWaitingLocked(&finished);
    wake = TakeWake();
  }
  Tell(finished, false);
  if (wake) wake_();
  if (!to_come.empty()) AwaitArguments(shared_from_this(), later, std::move(to_come));
  return {slot, lane};
}

/// The lane that it is with; 0: it waits.
LaneId TaskPool::StartLocked(Task& task) {
  const LaneId lane = line_.Begin(task, Now());
  if (lane != 0 && SendLocked(task) == Sent::kYes) return lane;
  waiting_bytes_ += task.call.values.size();
  return 0;
}

bool TaskPool::Full() const {
  const std::lock_guard lock(mutex_);
  return KeptBack() >= kWaitingMax || waiting_bytes_ >= kWaitingBytesMax;
}

Slot* TaskPool::WhenRoom() {
  const std::lock_guard lock(mutex_);
  if (KeptBack() < kWaitingMax && waiting_bytes_ < kWaitingBytesMax) return nullptr;
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
  if (room_waiters_.empty() || KeptBack() > kWaitingMax / 2 || waiting_bytes_ > kWaitingBytesMax / 2) return;
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
    const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
  const auto found = lanes_.find(id);
  if (found == lanes_.end()) return true;
  line_.Close(id);
  if (!line_.Forget(id)) return false;
  by_channel_.erase(found->second.channel->id());
  last = std::move(found->second.channel);
  lanes_.erase(found);
  return true;
}

void TaskPool::Stop(LaneId lane) {
  const std::lock_guard lock(mutex_);
  line_.Close(lane);
}

void TaskPool::Pause(LaneId lane, bool paused) {
  SlotList finished;
  bool wake;
  {
    const std::lock_guard lock(mutex_);
    line_.Pause(lane, paused);
    if (!paused) FillLaneLocked(lane, Now());
    NoteWaitingLocked(&finished);
    wake = TakeWake();
  }
  Tell(finished, false);
  if (wake) wake_();
}

std::size_t TaskPool::waiting() const {
  const std::lock_guard lock(mutex_);
  return line_.waiting();
}

// ---- from the processes ----------------------------------------------------------------------

void TaskPool::Answered(std::uint64_t channel_id, const std::vector<ObservedAnswer>& answers,
                        bool as_leader) {
  const std::shared_ptr<TaskPool> self = shared_from_this();
  SlotList finished;
  bool wake;
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_channel_.find(channel_id);
    const LaneId lane = found != by_channel_.end() ? found->second : 0;
    const Instant now = Now();
    answered_.clear();
    bool lost = false;
    for (const ObservedAnswer& answer : answers) {
      lost = lost || answer.lost != ObservedAnswer::Lost::kNo;
      if (answer.slot->observed != nullptr) answered_.push_back(static_cast<Task*>(answer.slot->observed));
    }
    const Duration each = line_.Answered(lane, answered_, now, lost);
    Instant at = now - each * static_cast<std::int64_t>(answered_.size());
    for (TaskDispatch::Task* answered : answered_) static_cast<Task*>(answered)->ended = {0, nullptr, lane, at += each, each, false};
    if (lost) {
      line_.Close(lane);
      wake_due_ = true;
    }
    for (const ObservedAnswer& answer : answers) {
      auto* task = static_cast<Task*>(answer.slot->observed);
      if (task == nullptr) {
        FinishInto(answer.slot, &finished);  // of Ask, or a definition's
        continue;
      }
      answer.slot->Release();  // the channel's; the task has another
      SettleLocked(*task, answer.lost, &finished);
    }
    if (lost) {
      FillAllLocked();
    } else {
      FillLaneLocked(lane, now);
    }
    if (line_.Idle(lane) && TooIdleLocked()) wake_due_ = true;
    NoteWaitingLocked(&finished);
    wake = TakeWake();
  }
  Tell(finished, as_leader);
  if (wake) wake_();
}

/// Its slot is filled: that is the task's answer, or it goes again.
void TaskPool::SettleLocked(Task& task, ObservedAnswer::Lost lost, SlotList* finished) {
  const std::uint16_t flags = task.slot->flags();
  task.over.reset();
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
  task.ended = {};
  if (task.call.items != nullptr) task.call.items->Again();
  line_.Again(task);
  waiting_bytes_ += task.call.values.size();
  return true;
}

void TaskPool::DeliverLocked(Task& task, SlotList* finished) {
  Slot* const slot = task.slot;
  if (task.cancelled && (slot->flags() & kErrorFlags) != 0) {
    ByteBuffer body;
    AppendRuntimeError(body, ErrorCode::kCancelled, "the task was cancelled");
    slot->Unfill();
    slot->Fill(kFlagReply | kFlagRuntimeError, body.view());
  }
  NoteEndedLocked(task);
  if (task.call.items != nullptr) task.call.items->End(slot->flags(), slot->bytes(), finished);
  ObserveItems(task, false);
  NoteParent(task, false);
  UnlinkLocked(task);
  slot->observed = nullptr;
  FinishInto(slot, finished);
  delete &task;
}

void TaskPool::NoteEndedLocked(Task& task) {
  TaskHistory::Ended& ended = task.ended;
  ended.id = task.slot->id();
  ended.name = task.call.function->name;
  ended.failed = (task.slot->flags() & kErrorFlags) != 0;
  if (ended.ended == Instant{}) ended.ended = Now();  // it was not given to any process
  HistoryLocked().Add(std::move(ended));
}

void TaskPool::AnswerLocked(Task& task, std::uint16_t flags, std::string_view body, SlotList* finished) {
  task.slot->Unfill();
  task.slot->Fill(flags, body);
  DeliverLocked(task, finished);
}

void TaskPool::LinkLocked(Task& task) {
  task.older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = &task;
  newest_ = &task;
}

void TaskPool::UnlinkLocked(Task& task) {
  (task.older != nullptr ? task.older->newer : oldest_) = task.newer;
  (task.newer != nullptr ? task.newer->older : newest_) = task.older;
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
  const std::lock_guard lock(mutex_);
  return std::exchange(doubtful_, {});
}

void TaskPool::Judge(Slot* slot, bool again) {
  SlotList finished;
  bool wake;
  {
    const std::lock_guard lock(mutex_);
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

}  // namespace troupe::actors
