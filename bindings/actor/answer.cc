#include "bindings/actor/answer.h"

#include <absl/strings/str_format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/bulk/bulk_session.h"
#include "actors/bulk/remote_results.h"
#include "actors/server/caller_connection.h"
#include "bindings/values/errors.h"
#include "bindings/values/object_values.h"
#include "bindings/values/pickle.h"
#include "bindings/values/values.h"

namespace troupe::bindings {
namespace {

using actors::ByteBuffer;

/// Steals `value`.
void SendValue(const AnswerTo& to, PyObject* value) {
  ByteBuffer frame;
  std::uint16_t flags = 0;
  WriteItem(to, value, frame, &flags);
  to.peer.Reply(to.sequence, flags, frame);
}

/// A generator has given all that was asked for: what it does after that is only said.
void EndYielding(PyObject* generator, Py_ssize_t asked) {
  PyObject* const value = PyIter_Next(generator);
  if (value != nullptr) {
    PySys_FormatStderr("%R yields more than num_returns=%zd values: the others are left out\n",
                       generator, asked);
  } else if (PyErr_Occurred() != nullptr) {
    PyErr_WriteUnraisable(generator);
  }
  Py_XDECREF(value);
}

/// Sets the error of a generator that has not given all: what it raised, or that it gave too few.
void SetTooFewYielded(PyObject* generator, Py_ssize_t given, Py_ssize_t asked) {
  if (PyErr_Occurred() == nullptr) {
    PyErr_Format(PyExc_ValueError, "Task returned %zd objects, but num_returns=%zd.", given, asked);
  } else if (PyErr_ExceptionMatches(PyExc_SystemExit)) {  // too late to end the process by it
    PyErr_Clear();
    PyErr_Format(PyExc_RuntimeError,
                 "%R called sys.exit(), which with num_returns=%zd is too late to end its process",
                 generator, asked);
  }
}

/// Sends a generator's values, each as it comes: its exception answers the values that it did not
/// give. False: an error is set.
bool SendYielded(const AnswerTo& to, PyObject* generator) {
  const Py_ssize_t asked = static_cast<Py_ssize_t>(to.form.returns);
  Py_ssize_t given = 0;
  PyObject* value = nullptr;
  for (; given < asked && (value = PyIter_Next(generator)) != nullptr; ++given)
    SendValue(to, value);
  if (given == asked) {
    EndYielding(generator, asked);
    return true;
  }
  SetTooFewYielded(generator, given, asked);
  return false;
}

/// The one value that is asked of a generator; steals that. nullptr: an error is set.
PyObject* FirstYielded(PyObject* generator) {
  PyObject* const value = PyIter_Next(generator);
  if (value != nullptr) {
    EndYielding(generator, 1);
  } else {
    SetTooFewYielded(generator, 0, 1);
  }
  Py_DECREF(generator);
  return value;
}

/// Sends all values of `result` but a single one. False: an error is set.
bool SendValues(const AnswerTo& to, PyObject* result) {
  if (PyGen_CheckExact(result)) return SendYielded(to, result);
  const Py_ssize_t asked = static_cast<Py_ssize_t>(to.form.returns);
  PyObject* values = PySequence_Fast(result, "");
  if (values == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "Task returned a %s, but num_returns=%zd.",
                 Py_TYPE(result)->tp_name, asked);
    return false;
  }
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(values);
  if (count != asked) {
    PyErr_Format(PyExc_ValueError, "Task returned %zd objects, but num_returns=%zd.", count, asked);
  }
  for (Py_ssize_t i = 0; count == asked && i < count; ++i) {
    SendValue(to, Py_NewRef(PySequence_Fast_GET_ITEM(values, i)));
  }
  Py_DECREF(values);
  return count == asked;
}

/// Offers the result to a caller of another host. False: an error is set.
bool OfferResult(const AnswerTo& to, Outgoing* outgoing, ByteBuffer& reply) {
  const std::shared_ptr<actors::BulkSession> bulk_session = to.peer.Bulk();
  if (bulk_session == nullptr) {
    RaiseRuntimeError(ErrorCode::kTooLarge,
                      "a large result for another host, or one with Refs inside it, needs a "
                      "connection of its own, and "
                      "this process has no descriptor left (raise `ulimit -n`)");
    return false;
  }
  std::string body;
  const std::optional<store::Writing> writing = std::exchange(outgoing->writing, {});
  const std::string_view bytes =
      writing ? std::string_view() : reply.view().substr(actors::kFrameHeadBytes);
  to.peer.Keep(to.sequence,
               actors::OfferResult(*actors::ObjectStore::Current(), writing ? &*writing : nullptr,
                                   bytes, std::move(outgoing->held), bulk_session, &body));
  reply.Truncate(actors::kFrameHeadBytes);
  reply.Append(body.data(), body.size());
  return true;
}

/// Lends the result in `reply`, or written to memory, and the references inside it. False: an error
/// is set.
bool LendResult(const AnswerTo& to, Outgoing* outgoing, ByteBuffer& reply) {
  if (to.peer.away()) return OfferResult(to, outgoing, reply);
  std::string body;
  const std::optional<store::Writing> writing = std::exchange(outgoing->writing, {});
  StatusOr<std::shared_ptr<actors::ResultHold>> hold = actors::ObjectStore::Current()->LendResult(
      writing ? &*writing : nullptr, reply.view().substr(actors::kFrameHeadBytes),
      outgoing->held.ids(), to.peer.process, &body);
  if (!hold.ok()) {
    RaiseStatus(hold.status());
    return false;
  }
  reply.Truncate(actors::kFrameHeadBytes);
  reply.Append(body.data(), body.size());
  to.peer.Keep(to.sequence, *std::move(hold));
  return true;
}

}  // namespace

std::uint64_t WriteReply(const AnswerTo& to, PyObject* result, ByteBuffer& reply,
                         std::uint16_t* flags) {
  const actors::CallLimits& limits = to.limits;
  const bool lends = !to.peer.process.IsNil();
  const bool away = to.peer.away();
  const std::size_t large_from = away ? actors::BulkSession::kFromBytes : actors::kLargeBytes;
  Outgoing outgoing(Outgoing::Way::kWriting, lends ? large_from : Outgoing::kNever, lends);
  outgoing.names_remote = away;
  bool encoded = result != nullptr && EncodeValue(reply, result, &outgoing);
  const bool fits = actors::PaddedTo8(reply.size()) <= limits.frame_bytes_max;
  if (encoded && fits && (outgoing.writing || !outgoing.held.empty())) {
    Py_DECREF(result);
    const std::uint64_t written = outgoing.writing ? outgoing.writing->bytes : 0;
    if (LendResult(to, &outgoing, reply)) {
      *flags |= actors::kFlagObjects;
      return reply.size() + written;
    }
    result = nullptr;
    encoded = false;
  }
  if (result != nullptr && !encoded && TakeNestedRef()) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "the result of %U() holds a Ref, and a task's goes to another host\n  return the "
                 "value, troupe.get(ref)",
                 to.method);
  }
  Py_XDECREF(result);
  const std::size_t bytes = reply.size() - actors::kFrameHeadBytes;
  if (encoded && actors::PaddedTo8(bytes) <= limits.frame_bytes_max) return reply.size();
  reply.Truncate(actors::kFrameHeadBytes);
  if (encoded) {
    const char* name = PyUnicode_AsUTF8(to.method);
    actors::AppendRuntimeError(
        reply, ErrorCode::kTooLarge,
        absl::StrFormat("the result of %s() takes %.1f MiB, one answer may take %g MiB\n"
                        "  return large data in parts",
                        name != nullptr ? name : "?", bytes / 1048576.0,
                        limits.frame_bytes_max / 1048576.0));
    *flags |= actors::kFlagRuntimeError;
    return reply.size();
  }
  Py_XDECREF(AppendRaised(reply, limits.frame_bytes_max));
  *flags |= actors::kFlagTaskError;
  return reply.size();
}

std::uint64_t WriteItem(const AnswerTo& to, PyObject* value, ByteBuffer& frame,
                        std::uint16_t* flags) {
  frame.Extend(actors::kFrameHeadBytes);
  *flags = actors::kFlagReply | actors::kFlagItem;
  return WriteReply(to, value, frame, flags);
}

void WriteAnswer(const AnswerTo& to, PyObject* result, ByteBuffer& reply, std::uint16_t* flags) {
  if (result != nullptr && to.form.returns == 1 && !to.form.streams && PyGen_CheckExact(result)) {
    result = FirstYielded(result);
  } else if (result != nullptr && to.form.returns != 1 && !to.form.streams) {
    const bool sent = to.form.returns == 0 || SendValues(to, result);
    Py_DECREF(result);
    result = sent ? Py_NewRef(Py_None) : nullptr;
  }
  WriteReply(to, result, reply, flags);
}

void WriteCancelled(ByteBuffer& reply, PyObject* method_name, const char* when) {
  const char* name = PyUnicode_AsUTF8(method_name);
  actors::AppendRuntimeError(reply, ErrorCode::kCancelled,
                             absl::StrFormat("%s() was cancelled by its caller %s",
                                             name != nullptr ? name : "the call", when));
}

}  // namespace troupe::bindings
