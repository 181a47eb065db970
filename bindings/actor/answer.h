// Answers of a call: a method's result or exception, as frames. Needs the GIL.
#pragma once

#include <Python.h>

#include <cstdint>

#include "actors/core/call/byte_buffer.h"
#include "actors/core/call/call_frame.h"

namespace troupe::actors {
class CallerConnection;
}

namespace troupe::bindings {

/// How the caller wants its answer (actors/core/call/call_target.h).
struct AnswerForm {
  std::uint32_t returns = 1;
  bool streams = false;
  std::uint32_t ahead = 0;
};

/// The call that is answered; a view, for the time of the answer.
struct AnswerTo {
  actors::CallerConnection& peer;
  std::uint64_t sequence;
  PyObject* method;  // str
  AnswerForm form;
  const actors::CallLimits& limits;
};

/// Appends a body to `reply` that fits: the result, or an error that says why not. Steals `result`;
/// nullptr means that an error is set, which becomes the reply. A result that is large, or holds
/// refs, is lent to the caller (kFlagObjects). Returns the bytes that it takes, wherever they are,
/// with its frame.
std::uint64_t WriteReply(const AnswerTo& to, PyObject* result, actors::ByteBuffer& reply,
                         std::uint16_t* flags);

/// Writes one of several values into an empty frame; steals it. An error with it is that value's
/// alone. Returns the bytes that it takes, wherever they are, with its frame; sets the frame's
/// flags.
std::uint64_t WriteItem(const AnswerTo& to, PyObject* value, actors::ByteBuffer& frame,
                        std::uint16_t* flags);

/// Appends the body of a call's last frame to `reply`; steals `result`, nullptr: an error is set.
/// Where the caller wants several values, queues a frame for each of them first.
void WriteAnswer(const AnswerTo& to, PyObject* result, actors::ByteBuffer& reply,
                 std::uint16_t* flags);

/// The body of the answer to a call that was cancelled, `when` it was (kFlagRuntimeError).
void WriteCancelled(actors::ByteBuffer& reply, PyObject* method_name, const char* when);

}  // namespace troupe::bindings
