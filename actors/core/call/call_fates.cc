#include "actors/core/call/call_fates.h"

#include <absl/strings/str_format.h>

#include "actors/core/call/byte_buffer.h"
#include "actors/core/call/call_frame.h"
#include "runtime/base/status.h"

namespace troupe::actors {

CallFates::Told CallFates::Error(bool sent, std::string_view text) const {
  ByteBuffer body;
  AppendRuntimeError(body, sent ? ErrorCode::kMaybeExecuted : ErrorCode::kNotSent,
                     absl::StrFormat("%s: %s", description_, text));
  return {kFlagReply | kFlagRuntimeError, std::string(body.view())};
}

bool CallFates::End(std::string_view reason, std::uint64_t written) {
  if (state_ != State::kOpen) return false;
  state_ = State::kEnded;
  written_ = written;
  end_reason_ = absl::StrFormat("the connection ended (%s)", reason);
  if (!judged_) unsent_ = Error(/*sent=*/false, end_reason_);
  return true;
}

void CallFates::Judge(std::uint16_t flags, std::string_view body) {
  judged_ = true;
  sent_ = unsent_ = Told{flags, std::string(body)};
}

bool CallFates::Finish(std::string_view text) {
  if (state_ == State::kOver) return false;
  state_ = State::kOver;
  if (judged_) return true;
  sent_ =
      Error(/*sent=*/true, absl::StrFormat("%s; the call had been sent and may have run", text));
  unsent_ = Error(/*sent=*/false, absl::StrFormat("%s; the call had not been sent", text));
  return true;
}

}  // namespace troupe::actors
