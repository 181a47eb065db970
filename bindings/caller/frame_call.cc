// Making a call's frame from Python values and queueing it: the hot path of the caller.
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/bulk/bulk_session.h"
#include "actors/caller/call_holds.h"
#include "actors/caller/pending_calls.h"
#include "actors/caller/reactor.h"
#include "actors/core/remote/value_refs.h"
#include "actors/net/fork_guard.h"
#include "actors/slots/item_stream.h"
#include "bindings/caller/channel.h"
#include "bindings/caller/stream_object.h"
#include "bindings/support/host.h"
#include "bindings/support/running.h"
#include "bindings/values/errors.h"
#include "bindings/values/object_values.h"
#include "bindings/values/pickle.h"
#include "bindings/values/ref.h"
#include "bindings/values/task_arguments.h"
#include "bindings/values/values.h"
#include "runtime/obs/trace.h"

namespace troupe::bindings {
namespace {

using actors::ByteBuffer;
using actors::CallReactor;
using actors::Channel;

constexpr char kRefsStay[] =
    "Refs cannot go inside this value\n  pass the Ref as an argument of its own, where it is "
    "replaced by its value, or "
    "put troupe.get(ref) there";

/// "argument 2" or "argument 'x'", for errors.
std::string ArgumentName(Py_ssize_t i, Py_ssize_t positional, PyObject* keywords) {
  if (i < positional) return absl::StrFormat("argument %d", i + 1);
  const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, i - positional));
  return absl::StrFormat("argument '%s'", name != nullptr ? name : "?");
}

/// A large value that is shared memory already: by name, or its bytes where a new value of its size
/// were copied too.
bool AppendObject(ByteBuffer& out, RefObject* ref, Outgoing* outgoing) {
  const std::optional<store::ObjectId> id = actors::ReadObjectId(ref->slot->bytes());
  actors::ObjectStore* store = Objects();
  if (!id || store == nullptr) return false;
  const std::size_t large_from = outgoing != nullptr ? outgoing->large_from : Outgoing::kNever;
  bool appended = false;
  // References inside the object are sent only if it is sent by name; lives stay behind where
  // nothing can.
  const bool refs = outgoing != nullptr && outgoing->refs;
  std::vector<store::ObjectId> inside = store->Inside(*id);
  if (!refs) std::erase_if(inside, store::IsLife);
  const bool contains = !inside.empty();
  if (contains && !refs) {
    PyErr_SetString(PyExc_TypeError, kRefsStay);
    return false;
  }
  if (!contains && large_from > actors::kLargeBytes &&
      !AppendObjectBytes(out, *id, large_from, &appended))
    return false;
  if (appended) return true;
  store->AddHandle(*id);
  outgoing->held.Add(*id);
  return AppendNamed(out, *id, *outgoing);
}

/// A value that is encoded already, and what it names.
bool AppendEncoded(ByteBuffer& out, std::string_view value, Outgoing* outgoing) {
  std::vector<store::ObjectId> refs;
  static_cast<void>(ObjectsNamed(value, 1, &refs, &refs));
  // Lives stay behind
  if (outgoing == nullptr || !outgoing->refs) std::erase_if(refs, store::IsLife);
  if (!refs.empty() && (outgoing == nullptr || !outgoing->refs)) {
    PyErr_SetString(PyExc_TypeError, kRefsStay);
    return false;
  }
  for (const store::ObjectId& id : refs) {
    actors::ObjectStore::Current()->AddHandle(id);
    outgoing->held.Add(id);
  }
  const std::size_t at = out.size();
  out.Append(value.data(), value.size());
  if (!refs.empty() && outgoing->names_remote) {
    const auto away = [](const store::ObjectId& id) {
      return actors::ObjectStore::Current()->RemoteNameOf(id);
    };
    actors::RenameRefs(out.data() + at, value.size(), away);
  }
  return true;
}

/// A Ref as an argument: its value travels. What is encoded already is copied as it is.
bool AppendRefArgument(ByteBuffer& out, RefObject* ref, Outgoing* outgoing) {
  if (outgoing != nullptr && outgoing->to_come != nullptr) {
    if (!ref->slot->done() && !Usable(ref)) return false;
    if (!ref->slot->done() || (ref->slot->flags() & actors::kErrorFlags) != 0) {
      if (ref->channel != nullptr) ref->channel->channel->get()->Flush();
      ref->slot->AddReference();
      outgoing->to_come->push_back({out.size(), actors::AnswerRef(ref->slot)});
      return true;
    }
  }
  if (!AwaitRef(ref, Instant::max(), nullptr)) return false;
  const std::uint16_t flags = ref->slot->flags();
  if ((flags & actors::kFlagObjects) != 0) return AppendObject(out, ref, outgoing);
  const std::string_view value =
      (flags & actors::kErrorFlags) == 0 ? FrontValue(ref->slot->bytes()) : std::string_view();
  if (!value.empty()) return AppendEncoded(out, value, outgoing);
  Py_XDECREF(ValueOf(ref));  // raises what the Ref holds
  return false;
}

bool AppendArguments(ByteBuffer& out, PyObject* const* args, Py_ssize_t positional,
                     PyObject* method, PyObject* keywords, Outgoing* outgoing) {
  const Py_ssize_t count = positional + (keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0);
  const std::size_t from = outgoing != nullptr ? outgoing->large_from : Outgoing::kNever;
  const bool in_frame = from > actors::kLargeBytes && from != Outgoing::kNever;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (in_frame)
      outgoing->large_from =
          std::max(actors::kLargeBytes, std::min(from, actors::RoomBeside(out.size())));
    if (IsRef(args[i])) {
      if (!AppendRefArgument(out, AsRef(args[i]), outgoing)) return false;
    } else if (!EncodeValue(out, args[i], outgoing)) {
      if (TakeNestedRef()) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s of %U(): %s",
                     ArgumentName(i, positional, keywords).c_str(), method, kRefsStay);
      }
      return false;
    }
  }
  return true;
}

bool CheckFrameSize(const ByteBuffer& frame, const actors::CallLimits& limits, PyObject* method) {
  const std::size_t body = frame.size();
  if (actors::PaddedTo8(body) <= limits.frame_bytes_max) return true;
  const char* name = PyUnicode_AsUTF8(method);
  RaiseRuntimeError(ErrorCode::kTooLarge,
                    actors::ArgumentsTooLarge(name != nullptr ? name : "?", body, limits));
  return false;
}

}  // namespace

bool AppendCallValues(ByteBuffer& out, PyObject* const* args, Py_ssize_t positional,
                      PyObject* method, PyObject* keywords, Outgoing* outgoing) {
  const actors::CallLimits limits;
  const Py_ssize_t count = positional + (keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0);
  if (count > limits.args_max) {
    PyErr_Format(PyExc_ValueError, "%U() was given %zd arguments, %d are allowed", method, count,
                 int{limits.args_max});
    return false;
  }
  return AppendArguments(out, args, positional, method, keywords, outgoing) &&
         CheckFrameSize(out, limits, method);
}

bool CheckGeneration(CallChannelObject* self) {
  if (self->generation == actors::ForkGuard::generation()) return true;
  RaiseRuntimeError(ErrorCode::kConnection,
                    "this handle's connection belongs to the parent process, not to this forked "
                    "child\n  look the actor up again in this process");
  return false;
}

namespace {

/// The frame of a call, but for its seal. False: an error is set.
bool MakeFrame(CallChannelObject* self, const CallKind& kind, PyObject* const* args,
               Py_ssize_t positional, PyObject* keywords, std::uint16_t mark, ByteBuffer& frame,
               ShapeTable::Shape* shape, Outgoing* outgoing) {
  if (!self->shapes->Find(kind.target, keywords, shape)) return false;
  const Py_ssize_t count = positional + (keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0);
  frame.Extend(actors::kFrameHeadBytes);
  actors::CallHead head;
  head.shape = shape->id;
  head.arg_count = static_cast<std::uint16_t>(count);
  head.keyword_count = static_cast<std::uint16_t>(count - positional);
  head.mark = mark;
  frame.AppendValue(head);
  if (shape->named) self->shapes->AppendNames(frame, kind.target, keywords);
  return AppendCallValues(frame, args, positional, kind.method, keywords, outgoing);
}

actors::AnswerRef RaiseTooMany(Channel& channel) {
  RaiseRuntimeError(
      kTooManyPending,
      absl::StrFormat("%s: %d calls wait for an answer, max_pending_calls allows no more\n"
                      "  get some of them first, or create the actor with a higher limit",
                      channel.description(), channel.Outstanding()));
  return {};
}

/// Queues the frame, waiting for room. None: an error is set.
actors::AnswerRef Queue(Channel& channel, ByteBuffer& frame, const CallKind& kind,
                        std::uint16_t flags, const std::shared_ptr<actors::ItemStream>& items) {
  bool drained = false;
  while (true) {
    Channel::Call call = channel.Issue(frame, flags, items);
    switch (call.issued) {
      case Channel::Issued::kOkDrain:
        CallReactor::Current().Drain(channel);
        [[fallthrough]];
      case Channel::Issued::kOk:
        return std::move(call.answer);
      case Channel::Issued::kFull:
        if (!AwaitRoom(channel.WhenRoom(), &channel)) return {};
        break;
      case Channel::Issued::kTooMany:
        if (std::exchange(drained, true)) {
          return RaiseTooMany(channel);
        }
        channel.Flush();
        CallReactor::Current().Drain(channel);  // answers that are here count
        break;
      case Channel::Issued::kEnded:
        break;  // returned by IssueInto only
    }
  }
}

/// From which size on values go to shared memory. Where it is not known yet on which host the actor
/// is to be, those that the frame has room for are copied: so much works wherever it will be.
std::size_t LargeFrom(Channel::Place place) {
  if (place == Channel::Place::kHere) return actors::kLargeBytes;
  if (place == Channel::Place::kRemote) return actors::BulkSession::kFromBytes;
  return actors::RoomBeside(0);
}

/// Keeps the call until its arguments are there, and the calls before it have gone. None: an error
/// is set.
actors::AnswerRef KeepBack(Channel& channel, ByteBuffer& frame, const CallKind& kind,
                           Outgoing& outgoing, ShapeTable::Shape* shape,
                           const std::shared_ptr<actors::ItemStream>& items) {
  if (channel.TooMany()) {
    channel.Flush();
    CallReactor::Current().Drain(channel);  // answers that are here count
    if (channel.TooMany()) return RaiseTooMany(channel);
  }
  actors::PendingCalls& line = channel.Line(TaskArguments());
  if (!AwaitRoom(actors::AnswerRef(line.WhenRoom()))) return {};
  // The call may never be sent: later calls cannot count on the names that it carries
  if (shape->named) {
    shape->id = actors::kNoShape;
    std::memcpy(frame.data() + actors::kFrameHeadBytes + offsetof(actors::CallHead, shape),
                &shape->id, sizeof shape->id);
  }
  actors::PendingCalls::Call call;
  call.frame.assign(frame.data(), frame.size());
  call.flags = shape->named ? actors::kFlagNamed : actors::kFlagNone;
  call.held = std::move(outgoing.held);
  call.to_come = actors::PendingArguments(std::move(*outgoing.to_come));
  call.items = items;
  const char* name = PyUnicode_AsUTF8(kind.method);
  call.method = name != nullptr ? name : "?";
  return line.Keep(std::move(call));
}

/// Sends the call. None: an error is set.
actors::AnswerRef Send(CallChannelObject* self, ByteBuffer& frame, const CallKind& kind,
                       PyObject* keywords, Outgoing& outgoing, const ShapeTable::Shape& shape,
                       bool here, const std::shared_ptr<actors::ItemStream>& items) {
  Channel& channel = **self->channel;
  std::uint16_t flags = shape.named ? actors::kFlagNamed : actors::kFlagNone;
  std::unique_ptr<actors::CallHolds> held;
  if (!outgoing.held.empty()) {
    flags |= actors::kFlagObjects;
    held = std::make_unique<actors::CallHolds>(std::move(outgoing.held),
                                               here ? nullptr : channel.Bulk());
  }
  actors::AnswerRef slot = Queue(channel, frame, kind, flags, items);
  if (slot == nullptr) return {};
  if (held != nullptr)
    static_cast<void>(CallReactor::Current().OnDone(slot.get(), std::move(held)));
  if (shape.named) self->shapes->Defined(kind.target, keywords, shape);
  return slot;
}

/// Records a marked call that is queued: its number, which its actor knows too, is known now.
void Record(std::uint16_t mark, Instant began, const actors::Answer& slot, const CallKind& kind) {
  obs::Span span;
  span.kind = obs::SpanKind::kCall;
  span.begin = began;
  span.end = obs::TraceNow();
  const char* name = PyUnicode_AsUTF8(kind.method);
  span.name = name != nullptr ? name : "?";
  span.flow = obs::FlowOf(mark, slot.call());
  obs::AddSpan(span);
}

}  // namespace

std::shared_ptr<actors::ItemStream> NewItems(const CallKind& kind) {
  if (!kind.streams && kind.returns < 2) return nullptr;
  CallReactor& reactor = CallReactor::Current();
  return std::make_shared<actors::ItemStream>(
      kind.streams ? actors::ItemStream::kOpen : kind.returns,
      [&reactor] { return reactor.NextLocalId(); });
}

PyObject* RefsOf(CallChannelObject* channel, const CallKind& kind, actors::ItemStream& items) {
  PyObject* refs = PyList_New(static_cast<Py_ssize_t>(kind.returns));
  for (std::uint32_t i = 0; refs != nullptr && i < kind.returns; ++i) {
    PyObject* ref = NewRef(items.At(i).Take(), channel, kind.method);
    if (ref == nullptr) {
      Py_CLEAR(refs);
    } else {
      PyList_SET_ITEM(refs, i, ref);
    }
  }
  return refs;
}

PyObject* IssueCall(CallChannelObject* self, const CallKind& kind, PyObject* const* args,
                    Py_ssize_t positional, PyObject* keywords) {
  if (!CheckGeneration(self)) return nullptr;
  const std::uint16_t mark = obs::SampleCall();
  const Instant began = mark == 0 ? Instant{} : obs::TraceNow();
  ShapeTable::Shape shape;
  char space[512];
  ByteBuffer frame(space, sizeof space);
  Channel& channel = **self->channel;
  const Channel::Place place = channel.place();
  Outgoing outgoing(Outgoing::Way::kObjects, LargeFrom(place), /*with_refs=*/true);
  outgoing.names_remote = place == Channel::Place::kRemote;
  outgoing.names_inside = place != Channel::Place::kHere;
  std::vector<actors::ArgumentToCome> to_come;
  outgoing.to_come = &to_come;
  if (!MakeFrame(self, kind, args, positional, keywords, mark, frame, &shape, &outgoing)) {
    return nullptr;
  }
  const std::shared_ptr<actors::ItemStream> items = NewItems(kind);
  const actors::PendingCalls* const line = channel.line();
  const bool waits = !to_come.empty() || (line != nullptr && line->Holds());
  actors::AnswerRef slot = waits ? KeepBack(channel, frame, kind, outgoing, &shape, items)
                                 : Send(self, frame, kind, keywords, outgoing, shape,
                                        place == Channel::Place::kHere, items);
  if (slot == nullptr) return nullptr;
  if (mark != 0 && !waits) Record(mark, began, *slot, kind);
  if (const RunningCall* const made_by = Running::current()) slot->set_started_by(made_by->number);
  if (kind.returns == 1 && !kind.streams) return NewRef(slot.Take(), self, kind.method);
  if (kind.streams) return NewRefStream(slot.Take(), items, self, kind);
  if (kind.returns == 0) Py_RETURN_NONE;
  return RefsOf(self, kind, *items);
}

}  // namespace troupe::bindings
