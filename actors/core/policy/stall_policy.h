// When a TCP connection to another host counts as lost although nothing has ended it.
//
//   ST-1  Sent bytes, or a probe of a closed window, that stay unanswered for kSilence: lost.
//   ST-2  Any acknowledgement in between begins the count anew.
//   ST-3  A peer that answers probes but takes nothing (it is busy in a method) is never lost: this
//         is what TCP_USER_TIMEOUT gets wrong, and why call connections do not set it.
//   ST-4  With nothing on its way there is nothing to conclude: keepalive sees to that.
//
// Pure; fed with samples of TCP_INFO about once a second.
#pragma once

#include <chrono>
#include <optional>

#include "runtime/base/time.h"

namespace troupe::actors {

struct TcpSample {
  bool unanswered = false;  // segments in flight, or probes without an answer
  Duration since_answer{};  // since the last acknowledgement arrived
};

class StallPolicy {
 public:
  static constexpr std::chrono::seconds kSilence{5};

  /// True: the connection is lost.
  bool Lost(Instant now, const TcpSample& sample) {
    if (!sample.unanswered) {
      since_.reset();
      return false;
    }
    if (!since_) since_ = now;  // the last answer may be old: nothing was awaited before
    const Instant answered = now - sample.since_answer;
    if (answered > *since_) since_ = answered;
    return now - *since_ >= kSilence;
  }

 private:
  std::optional<Instant> since_;  // something is awaited, and nothing has come, since then
};

}  // namespace troupe::actors
