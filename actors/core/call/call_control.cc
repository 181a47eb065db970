#include "actors/core/call/call_control.h"

#include <absl/strings/str_format.h>

#include <cstring>

namespace troupe::actors {
namespace {

struct ControlBody {
  std::uint32_t kind = 0;
  std::uint32_t resumes = 0;
  std::uint64_t session[2] = {0, 0};
};
static_assert(sizeof(ControlBody) == 24);

bool OfCall(ControlKind kind) {
  return kind == ControlKind::kTaken || kind == ControlKind::kCancel;
}

}  // namespace

std::string ControlFrame(ControlKind kind, const CallControl& control, std::uint64_t ack) {
  ControlBody body;
  body.kind = static_cast<std::uint32_t>(kind);
  body.resumes = control.resumes ? 1 : 0;
  body.session[0] = OfCall(kind) ? control.sequence : control.session.hi;
  body.session[1] = OfCall(kind) ? control.count : control.session.lo;
  char space[kFrameHeadBytes + sizeof body];
  ByteBuffer frame(space, sizeof space);
  frame.Extend(kFrameHeadBytes);
  frame.Append(&body, sizeof body);
  SealFrame(frame, kFlagControl, 0, ack);
  return std::string(frame.view());
}

StatusOr<CallControl> ParseControl(const Frame& frame) {
  if (frame.head.flags != kFlagControl || frame.head.sequence != 0) {
    return MakeError(ErrorCode::kInvalid, "a control frame that is a call or a reply as well");
  }
  ControlBody body;
  if (frame.body.size() != sizeof body) {
    return MakeError(ErrorCode::kInvalid,
                     absl::StrFormat("a control frame of %u bytes, not 24", frame.body.size()));
  }
  std::memcpy(&body, frame.body.data(), sizeof body);
  CallControl control;
  control.kind = static_cast<ControlKind>(body.kind);
  control.resumes = body.resumes != 0;
  if (body.kind < 1 || body.kind > 7) {
    return MakeError(ErrorCode::kInvalid, absl::StrFormat("a control frame of kind %u", body.kind));
  }
  if (OfCall(control.kind)) {
    control.sequence = body.session[0];
    control.count = body.session[1];
    if (body.resumes == 0 && control.sequence != 0) return control;
    return MakeError(ErrorCode::kInvalid, "a control frame of a call that names none");
  }
  control.session = SessionId(body.session[0], body.session[1]);
  const bool hello = control.kind == ControlKind::kHello;
  const bool named = hello || control.kind == ControlKind::kWho;
  if (body.resumes > (hello ? 1 : 0) || control.session.IsNil() == named) {
    return MakeError(ErrorCode::kInvalid,
                     "a control frame whose session does not go with its kind");
  }
  return control;
}

}  // namespace troupe::actors
