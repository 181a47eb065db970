// Making a call's frame from Python values and queueing it: the hot path of the caller.
#include <absl/strings/str_format.h>

#include <string>

#include "actors/fork_guard.h"
#include "actors/reactor.h"
#include "bindings/call_channel.h"
#include "bindings/call_errors.h"
#include "bindings/call_host.h"
#include "bindings/call_pickle.h"
#include "bindings/call_ref.h"
#include "bindings/call_values.h"

namespace troupe::bindings {
namespace {

using actors::ByteBuffer;
using actors::CallReactor;
using actors::Channel;

/// "argument 2" or "argument 'x'", for errors.
std::string ArgumentName(Py_ssize_t i, Py_ssize_t positional, PyObject* keywords) {
  if (i < positional) return absl::StrFormat("argument %d", i + 1);
  const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, i - positional));
  return absl::StrFormat("argument '%s'", name != nullptr ? name : "?");
}

/// A Ref as an argument: its value travels. What is encoded already is copied as it is.
bool AppendRefArgument(ByteBuffer& out, RefObject* ref) {
  if (!AwaitRef(ref, Instant::max(), nullptr)) return false;
  const std::uint16_t flags = ref->slot->flags();
  const std::string_view value = (flags & (actors::kFlagTaskError | actors::kFlagRuntimeError)) == 0
                                     ? FrontValue(ref->slot->bytes())
                                     : std::string_view();
  if (!value.empty()) {
    out.Append(value.data(), value.size());
    return true;
  }
  Py_XDECREF(ValueOf(ref));  // raises what the Ref holds
  return false;
}

bool AppendArguments(ByteBuffer& out, PyObject* const* args, Py_ssize_t positional,
                     PyObject* method, PyObject* keywords) {
  const Py_ssize_t count = positional + (keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (IsRef(args[i])) {
      if (!AppendRefArgument(out, AsRef(args[i]))) return false;
    } else if (!EncodeValue(out, args[i])) {
      if (TakeNestedRef()) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError,
                     "%s of %U() holds a Ref inside it\n  pass the Ref as an argument of its own, "
                     "where it is replaced by its value, or put troupe.get(ref) there",
                     ArgumentName(i, positional, keywords).c_str(), method);
      }
      return false;
    }
  }
  return true;
}

bool CheckFrameSize(const ByteBuffer& frame, const actors::CallLimits& limits, PyObject* method) {
  const std::size_t body = frame.size() - actors::kFrameHeadBytes;
  if (actors::PaddedTo8(body) <= limits.frame_bytes_max) return true;
  const char* name = PyUnicode_AsUTF8(method);
  RaiseRuntimeError(
      ErrorCode::kTooLarge,
      absl::StrFormat("the arguments of %s() take %.1f MiB, one call may take %g MiB\n"
                      "  pass large data in parts",
                      name != nullptr ? name : "?", body / 1048576.0,
                      limits.frame_bytes_max / 1048576.0));
  return false;
}

/// Waits, reading all channels, until `channel` may take another call. False: an error is set.
bool AwaitRoom(Channel& channel) {
  actors::Slot* slot = channel.WhenRoom();
  if (slot == nullptr) return true;
  const actors::SlotHold hold(slot);
  Channel* channels[] = {&channel};
  actors::WaitRequest request;
  request.slots = &slot;
  request.slot_count = 1;
  request.channels = channels;
  request.channel_count = 1;
  GilHost host;
  return CallReactor::Current().Wait(request, host) == actors::WaitResult::kDone;
}

}  // namespace

bool CheckGeneration(CallChannelObject* self) {
  if (self->generation == actors::ForkGuard::generation()) return true;
  RaiseRuntimeError(ErrorCode::kConnection,
                    "this handle's connection belongs to the parent process, not to this forked "
                    "child\n  look the actor up again in this process");
  return false;
}

PyObject* IssueCall(CallChannelObject* self, PyObject* method, PyObject* const* args,
                    Py_ssize_t positional, PyObject* keywords) {
  if (!CheckGeneration(self)) return nullptr;
  const actors::CallLimits limits;
  const Py_ssize_t count = positional + (keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0);
  if (count > limits.args_max) {
    return PyErr_Format(PyExc_ValueError, "%U() was given %zd arguments, %d are allowed", method,
                        count, int{limits.args_max});
  }
  ShapeTable::Shape shape;
  if (!self->shapes->Find(method, keywords, &shape)) return nullptr;
  char space[512];
  ByteBuffer frame(space, sizeof space);
  frame.Extend(actors::kFrameHeadBytes);
  actors::CallHead head;
  head.shape = shape.id;
  head.arg_count = static_cast<std::uint16_t>(count);
  head.keyword_count = static_cast<std::uint16_t>(count - positional);
  frame.AppendValue(head);
  if (shape.named) self->shapes->AppendNames(frame, method, keywords);
  if (!AppendArguments(frame, args, positional, method, keywords)) return nullptr;
  if (!CheckFrameSize(frame, limits, method)) return nullptr;
  Channel& channel = **self->channel;
  actors::Slot* slot = nullptr;
  Channel::Issued issued;
  while ((issued = channel.Issue(frame, shape.named ? actors::kFlagNamed : actors::kFlagNone,
                                 &slot)) == Channel::Issued::kFull) {
    if (!AwaitRoom(channel)) return nullptr;
  }
  if (shape.named) self->shapes->Defined(method, keywords, shape);
  if (issued == Channel::Issued::kOkDrain) CallReactor::Current().Drain(channel);
  return NewRef(slot, self, method);
}

}  // namespace troupe::bindings
