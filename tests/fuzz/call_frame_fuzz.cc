// Fuzzes the first thing that looks at a caller's bytes: call frames, a call's names and arguments,
// an error reply's text, control frames, which are also put to both halves of a session: it may
// refuse them, and keeps nothing of them. What is taken as a frame lies within the bytes that came.
// The same bytes go to the reader of an object link's frames: what it takes is, written again, what
// came.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "actors/core/call/call_frame.h"
#include "actors/core/call/object_frame.h"
#include "actors/core/session/actor_session.h"
#include "actors/core/session/caller_session.h"

namespace {

void ReadAsObjectFrame(std::string_view bytes) {
  namespace actors = troupe::actors;
  actors::ObjectFrame frame;
  std::string why;
  const actors::ObjectParse outcome = actors::ReadObjectFrame(bytes, &frame, &why);
  if (outcome == actors::ObjectParse::kBad && why.empty()) std::abort();
  if (outcome != actors::ObjectParse::kFrame) return;
  std::string again;
  actors::AppendObjectFrame(again, frame);
  if (again != bytes.substr(0, actors::kObjectFrameBytes)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace actors = troupe::actors;
  const actors::CallLimits limits;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadAsObjectFrame(bytes);
  actors::CallerSession caller(/*waits=*/true);
  caller.Connected(troupe::SessionId(1, 1));
  actors::ActorSession actor;
  for (;;) {
    actors::Frame frame;
    std::string why;
    const actors::ParseOutcome outcome = actors::ParseFrame(bytes, limits, &frame, &why);
    if (outcome == actors::ParseOutcome::kBad && why.empty()) std::abort();
    if (outcome != actors::ParseOutcome::kFrame) return 0;
    if (frame.bytes > bytes.size() || frame.body.size() > frame.bytes) std::abort();
    if ((frame.head.flags & (actors::kFlagRuntimeError | actors::kFlagGoodbye)) != 0) {
      static_cast<void>(actors::ReadRuntimeError(frame.body));
    }
    actors::CallPrefix call;
    if (actors::ParseCall(frame, limits, &call).ok() &&
        (call.keywords.size() > call.head.arg_count ||
         (call.head.shape != actors::kNoShape &&
          call.keywords.size() > limits.shape_keywords_max))) {
      std::abort();
    }
    const auto control = actors::ParseControl(frame);
    if (control.ok()) {
      static_cast<void>(caller.Control(*control, frame.head.ack));
      if (actor.Resume(frame.head.ack) == actors::SendWindow::Rewound::kOk && frame.head.ack != 0) {
        std::abort();  // there was no such reply
      }
    } else {
      static_cast<void>(actor.TakeCall(frame.head.sequence, frame.head.ack, frame.bytes));
      static_cast<void>(caller.Acknowledge(frame.head.ack));
    }
    if (caller.window().kept_bytes() + actor.window().kept_bytes() != 0) std::abort();
    bytes.remove_prefix(frame.bytes);
  }
}
