// Tasks and functions as calls of the processes that run them.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "actors/net/now.h"
#include "actors/caller/reactor.h"
#include "actors/core/remote/value_refs.h"
#include "actors/tasks/task.h"

namespace troupe::actors {

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
    const bool room = lane.shapes.size() < CallLimits().shapes_max && task.call.own_shape == nullptr;
    head.shape = !named ? known->second : room ? static_cast<std::uint16_t>(lane.shapes.size()) : kNoShape;
    head.arg_count = task.call.argument_count;
    head.keyword_count = shape->keyword_count;
    char space[512];
    ByteBuffer frame(space, sizeof space);
    frame.Extend(kFrameHeadBytes);
    frame.AppendValue(head);
    if (named) frame.Append(shape->names.data(), shape->names.size());
    std::uint16_t flags = named ? kFlagNamed : kFlagNone;
    std::unique_ptr<CallHolds> over;
    AppendArgumentsTo(lane, task, frame, &flags, &over);
    sent = IssueLocked(lane, frame, flags, task.slot, task.call.items);
    if (sent == Sent::kYes) task.over = std::move(over);
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

namespace {

/// The same once more: each with a handle of its own.
Handles Copied(const Handles& held) {
  Handles copy;
  for (const store::ObjectId& id : held.ids()) {
    ObjectStore::Current()->AddHandle(id);
    copy.Add(id);
  }
  return copy;
}

}  // namespace

/// What they name is registered by who runs the task before this process knows of its answer; on another host it may be
/// read, `*over` the channel's link, until then.
void TaskPool::AppendArgumentsTo(const Lane& lane, const Task& task, ByteBuffer& frame, std::uint16_t* flags,
                                 std::unique_ptr<CallHolds>* over) const {
  const std::string& values = task.call.values;
  if (task.call.held.empty()) return frame.Append(values.data(), values.size());
  if (lane.channel->place() != Channel::Place::kRemote) {
    *flags |= kFlagObjects;
    return frame.Append(values.data(), values.size());
  }
  bool named = false;
  const std::optional<std::string> away = values_.ForRemote(values, task.call.argument_count, &named);
  if (!away || named) {
    *flags |= kFlagObjects;
    *over = std::make_unique<CallHolds>(Copied(task.call.held), lane.channel->Bulk());
  }
  const std::string& sent = away ? *away : values;  // what is no value its process says
  frame.Append(sent.data(), sent.size());
}

Slot* TaskPool::Ask(LaneId id, std::string_view method) {
  const std::lock_guard lock(mutex_);
  const auto found = lanes_.find(id);
  if (found == lanes_.end()) return nullptr;
  ByteBuffer frame;
  frame.Extend(kFrameHeadBytes);
  frame.AppendValue(CallHead());
  frame.AppendValue(static_cast<std::uint16_t>(method.size()));
  frame.Append(method.data(), method.size());
  SlotHold slot(Slot::New(CallReactor::Current().NextLocalId()));
  if (IssueLocked(found->second, frame, kFlagNamed, slot.get(), nullptr) != Sent::kYes) return nullptr;
  found->second.channel->Flush();
  return slot.Take();
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
  std::unique_ptr<CallHolds> over;
  std::uint16_t flags = kFlagNamed;
  if (!function.refs.empty()) {
    flags |= kFlagObjects;
    if (lane.channel->place() == Channel::Place::kRemote) {
      const std::size_t refs = frame.size() - function.definition.size() + function.refs_at;
      RenameRefs(frame.data() + refs, frame.size() - refs,
                 [](const store::ObjectId& id) { return ObjectStore::Current()->RemoteNameOf(id); });
      over = std::make_unique<CallHolds>(Copied(function.refs), lane.channel->Bulk());
    }
  }
  *why = IssueLocked(lane, frame, flags, slot.get(), nullptr);
  if (*why != Sent::kYes) return false;
  if (over != nullptr) static_cast<void>(CallReactor::Current().OnDone(slot.get(), std::move(over)));
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
  while (TaskDispatch::Task* next = line_.Next(id, now)) {
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

}  // namespace troupe::actors
