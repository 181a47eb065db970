// Fuzzes the first thing that looks at a caller's bytes: call frames, a call's names and arguments, an
// error reply's text. What is taken as a frame lies within the bytes that came.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "actors/call_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace actors = troupe::actors;
  const actors::CallLimits limits;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
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
    if (actors::ParseCall(frame, limits, &call).ok() && call.keywords.size() > limits.keywords_max) {
      std::abort();
    }
    bytes.remove_prefix(frame.bytes);
  }
}
