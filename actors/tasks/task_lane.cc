#include "actors/tasks/task_lane.h"

#include <optional>
#include <string>

#include "actors/caller/reactor.h"
#include "actors/core/call/call_frame.h"
#include "actors/core/remote/value_refs.h"
#include "actors/objects/object_store.h"

namespace troupe::actors {
namespace {

/// Handles of the objects that these hold, for a second owner.
Handles Copied(const Handles& held) {
  Handles copy;
  for (const store::ObjectId& id : held.ids()) {
    ObjectStore::Current()->AddHandle(id);
    copy.Add(id);
  }
  return copy;
}

}  // namespace

TaskLane::Sent TaskLane::Send(const TaskCall& call, Answer* answer, const ArgumentCodec& values,
                              std::unique_ptr<CallHolds>* over) {
  const TaskFunction& function = *call.function;
  Sent sent = Define(function);
  if (sent == Sent::kYes) sent = SendCall(call, answer, values, over);
  if (sent != Sent::kYes) return sent;
  if (call.items != nullptr) {
    const std::uint64_t taken = call.items->taken().items;
    if (taken != 0) channel_->Taken(answer, taken);
  }
  if (function.calls_max == 0 || ++functions_[function.id] < function.calls_max) return Sent::kYes;
  return Sent::kLast;
}

TaskLane::Sent TaskLane::SendCall(const TaskCall& call, Answer* answer, const ArgumentCodec& values,
                                  std::unique_ptr<CallHolds>* over) {
  const TaskShape& shape = *call.shape;
  const auto known = shapes_.find(shape.id);
  const bool named = known == shapes_.end();
  const bool room = shapes_.size() < CallLimits().shapes_max && call.own_shape == nullptr;
  CallHead head;
  head.shape = !named ? known->second
               : room ? static_cast<std::uint16_t>(shapes_.size())
                      : kNoShape;
  head.arg_count = call.argument_count;
  head.keyword_count = shape.keyword_count;
  char space[512];
  ByteBuffer frame(space, sizeof space);
  frame.Extend(kFrameHeadBytes);
  frame.AppendValue(head);
  if (named) frame.Append(shape.names.data(), shape.names.size());
  std::uint16_t flags = named ? kFlagNamed : kFlagNone;
  std::unique_ptr<CallHolds> holds;
  AppendArguments(call, values, frame, &flags, &holds);
  const Sent sent = Issue(frame, flags, answer, call.items);
  if (sent != Sent::kYes) return sent;
  *over = std::move(holds);
  if (named && room) shapes_.emplace(shape.id, head.shape);
  return sent;
}

/// Appends the arguments. References in them are registered by the process that runs the task
/// before this one learns of its answer; on another host they may be read, over `*over`, the
/// channel's link, until then.
void TaskLane::AppendArguments(const TaskCall& call, const ArgumentCodec& values, ByteBuffer& frame,
                               std::uint16_t* flags, std::unique_ptr<CallHolds>* over) const {
  if (call.held.empty()) return frame.Append(call.values.data(), call.values.size());
  if (channel_->place() != Channel::Place::kRemote) {
    *flags |= kFlagObjects;
    return frame.Append(call.values.data(), call.values.size());
  }
  bool named = false;
  const std::optional<std::string> away =
      values.ForRemote(call.values, call.argument_count, &named);
  if (!away || named) {
    *flags |= kFlagObjects;
    *over = std::make_unique<CallHolds>(Copied(call.held), channel_->Bulk());
  }
  const std::string& sent = away ? *away : call.values;  // the process reports a value that cannot
                                                         // be read
  frame.Append(sent.data(), sent.size());
}

AnswerRef TaskLane::Ask(std::string_view method) {
  ByteBuffer frame;
  frame.Extend(kFrameHeadBytes);
  frame.AppendValue(CallHead());
  frame.AppendValue(static_cast<std::uint16_t>(method.size()));
  frame.Append(method.data(), method.size());
  AnswerRef slot(Answer::New(CallReactor::Current().NextLocalId()));
  if (Issue(frame, kFlagNamed, slot.get(), nullptr) != Sent::kYes) return AnswerRef();
  channel_->Flush();
  return slot;
}

/// kYes: the process knows the function.
TaskLane::Sent TaskLane::Define(const TaskFunction& function) {
  if (functions_.contains(function.id)) return Sent::kYes;
  ByteBuffer frame;
  frame.Extend(kFrameHeadBytes);
  CallHead head;
  head.arg_count = function.definition_arguments;
  frame.AppendValue(head);
  frame.AppendValue(static_cast<std::uint16_t>(kDefine.size()));
  frame.Append(kDefine.data(), kDefine.size());
  frame.Append(function.definition.data(), function.definition.size());
  const AnswerRef slot(Answer::New(CallReactor::Current().NextLocalId()));
  std::unique_ptr<CallHolds> over;
  std::uint16_t flags = kFlagNamed;
  if (!function.refs.empty()) {
    flags |= kFlagObjects;
    if (channel_->place() == Channel::Place::kRemote) {
      const std::size_t refs = frame.size() - function.definition.size() + function.refs_at;
      RenameRefs(frame.data() + refs, frame.size() - refs, [](const store::ObjectId& id) {
        return ObjectStore::Current()->RemoteNameOf(id);
      });
      over = std::make_unique<CallHolds>(Copied(function.refs), channel_->Bulk());
    }
  }
  const Sent sent = Issue(frame, flags, slot.get(), nullptr);
  if (sent != Sent::kYes) return sent;
  if (over != nullptr)
    static_cast<void>(CallReactor::Current().OnDone(slot.get(), std::move(over)));
  functions_.emplace(function.id, 0);
  return sent;
}

TaskLane::Sent TaskLane::Issue(ByteBuffer& frame, std::uint16_t flags, Answer* answer,
                               std::shared_ptr<ItemStream> items) {
  switch (channel_->IssueInto(frame, flags, answer, std::move(items))) {
    case Channel::Issued::kFull:
      return Sent::kLater;  // the next answer makes room
    case Channel::Issued::kEnded:
    case Channel::Issued::kTooMany:
      return Sent::kNever;
    case Channel::Issued::kOk:
    case Channel::Issued::kOkDrain:
      break;
  }
  return Sent::kYes;
}

}  // namespace troupe::actors
