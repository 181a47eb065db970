// The body that tells a peer of a Status.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

namespace troupe::wire {

/// Returns the answer to a request that failed.
inline ErrorReply ErrorReplyOf(const Status& why) {
  ErrorReply error;
  error.code = static_cast<std::uint16_t>(ErrorCodeOf(why));
  error.text = MessageOf(why);
  return error;
}

}  // namespace troupe::wire
