// Pushes of a control channel's peer, in order, until the program asks for them. Pure; takes no
// lock.
//
//   PQ-1  What was queued first is given out first.
//   PQ-2  Once more than kPushBytesMax wait, the program does not read: its connection is to end.
//         Each push counts with its attachment and kPushOverhead, so that empty ones are bounded
//         too.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/wire/messages.h"

namespace troupe::client {

inline constexpr std::size_t kPushBytesMax = 64u << 20;
inline constexpr std::size_t kPushOverhead = 256;

/// A push of the peer, or the refusal (ErrorReply) of a message sent by ControlClient::Ask.
struct Push : wire::Message {
  std::shared_ptr<const wire::Message> asked;  // refused message; nullptr: none
};

class PushQueue {
 public:
  /// False: with it more wait than may.
  bool Add(Push push) {
    bytes_ += Weight(push);
    pushes_.push_back(std::move(push));
    return bytes_ <= kPushBytesMax;
  }
  bool empty() const { return pushes_.empty(); }
  /// The oldest one, or nullopt.
  std::optional<Push> Take() {
    if (pushes_.empty()) return std::nullopt;
    std::optional<Push> next = std::move(pushes_.front());
    pushes_.pop_front();
    bytes_ -= Weight(*next);
    return next;
  }

 private:
  static std::size_t Weight(const Push& push) { return push.attachment.size() + kPushOverhead; }

  std::deque<Push> pushes_;
  std::size_t bytes_ = 0;
};

}  // namespace troupe::client
