#include "runtime/base/status.h"

#include <absl/strings/cord.h>

#include <cstdlib>
#include <optional>

namespace troupe {
namespace {

constexpr char kPayloadUrl[] = "troupe/error-code";

StatusCode CanonicalCode(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNone:
      return StatusCode::kOk;
    case ErrorCode::kInternal:
      return StatusCode::kInternal;
    case ErrorCode::kConnection:
    case ErrorCode::kActorUnavailable:
    case ErrorCode::kNotSent:
      return StatusCode::kUnavailable;
    case ErrorCode::kJoinRefused:
      return StatusCode::kUnauthenticated;
    case ErrorCode::kNotFound:
      return StatusCode::kNotFound;
    case ErrorCode::kInvalid:
      return StatusCode::kInvalidArgument;
    case ErrorCode::kInfeasible:
    case ErrorCode::kTooLarge:
      return StatusCode::kResourceExhausted;
    case ErrorCode::kTimeout:
      return StatusCode::kDeadlineExceeded;
    case ErrorCode::kCancelled:
      return StatusCode::kCancelled;
    case ErrorCode::kFenced:
    case ErrorCode::kWrongCluster:
    case ErrorCode::kVersionMismatch:
      return StatusCode::kFailedPrecondition;
    case ErrorCode::kActorDied:
    case ErrorCode::kLaunchFailed:
      return StatusCode::kAborted;
    case ErrorCode::kMaybeExecuted:
    case ErrorCode::kUnknownOutcome:
      return StatusCode::kUnknown;
    case ErrorCode::kAlreadyExists:
      return StatusCode::kAlreadyExists;
  }
  return StatusCode::kInternal;
}

ErrorCode NearestCode(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return ErrorCode::kNone;
    case StatusCode::kUnavailable:
      return ErrorCode::kConnection;
    case StatusCode::kUnauthenticated:
    case StatusCode::kPermissionDenied:
      return ErrorCode::kJoinRefused;
    case StatusCode::kNotFound:
      return ErrorCode::kNotFound;
    case StatusCode::kInvalidArgument:
      return ErrorCode::kInvalid;
    case StatusCode::kResourceExhausted:
      return ErrorCode::kTooLarge;
    case StatusCode::kDeadlineExceeded:
      return ErrorCode::kTimeout;
    case StatusCode::kCancelled:
      return ErrorCode::kCancelled;
    case StatusCode::kAlreadyExists:
      return ErrorCode::kAlreadyExists;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

Status MakeError(ErrorCode code, std::string_view text) {
  Status status(CanonicalCode(code), absl::string_view(text.data(), text.size()));
  const std::string number = std::to_string(static_cast<unsigned>(code));
  status.SetPayload(kPayloadUrl, absl::Cord(number));
  return status;
}

ErrorCode ErrorCodeOf(const Status& status) {
  if (status.ok()) return ErrorCode::kNone;
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload) return NearestCode(status.code());
  const std::string number(*payload);
  return static_cast<ErrorCode>(std::strtoul(number.c_str(), nullptr, 10));
}

std::string MessageOf(const Status& status) {
  return std::string(status.message().data(), status.message().size());
}

}  // namespace troupe
