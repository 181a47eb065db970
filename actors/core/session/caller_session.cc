#include "actors/core/session/caller_session.h"

namespace troupe::actors {

void CallerSession::Connected(const SessionId& fresh, const ProcessId& self) {
  CallControl hello;
  hello.resumes = welcomed_;
  if (!welcomed_) id_ = fresh;
  hello.session = id_;
  std::string opening = ControlFrame(ControlKind::kHello, hello, TakeAck());
  if (!welcomed_ && !self.IsNil()) {
    CallControl who;
    who.session = SessionId(self.hi, self.lo);
    opening += ControlFrame(ControlKind::kWho, who, TakeAck());
  }
  greeting_ = welcomed_ || waits_;
  if (greeting_) {
    window_.Open(std::move(opening), /*held=*/true);
  } else {
    window_.AppendControl(opening);  // in one write with the first call
  }
}

void CallerSession::Disconnected() {
  greeting_ = false;
  window_.Open({}, /*held=*/true);
}

Status CallerSession::Control(const CallControl& control, std::uint64_t ack) {
  switch (control.kind) {
    case ControlKind::kAck:
      if (greeting_ || !Acknowledge(ack)) break;
      return absl::OkStatus();
    case ControlKind::kEnd:
      over_ = true;
      return absl::OkStatus();
    case ControlKind::kWelcome: {
      if (welcomed_ && !greeting_) break;
      if (greeting_ && window_.Rewind(ack) != SendWindow::Rewound::kOk) break;
      if (!greeting_ && ack != 0) break;
      welcomed_ = true;
      greeting_ = false;
      window_.LetGo();
      return absl::OkStatus();
    }
    case ControlKind::kHello:
    case ControlKind::kWho:
    case ControlKind::kTaken:
    case ControlKind::kCancel:
      break;
  }
  return MakeError(ErrorCode::kInvalid,
                   "a control frame that does not follow from what was said before");
}

void CallerSession::AppendOfCall(ControlKind kind, std::uint64_t sequence, std::uint64_t count) {
  CallControl control;
  control.sequence = sequence;
  control.count = count;
  window_.AppendControl(ControlFrame(kind, control, TakeAck()));
}

void CallerSession::AppendEnd() {
  window_.AppendControl(ControlFrame(ControlKind::kEnd, {}, TakeAck()));
}

}  // namespace troupe::actors
