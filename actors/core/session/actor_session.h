// The actor's half of a call session (caller_session.h): which calls were received, and the replies
// that the caller has not said it received. Pure.
//
//   RS-1  A call is received, and so run, at most once, in the order of its caller, over all
//         connections.
//   RS-2  While both ends live and keep what they must, no call and no reply is lost.
//   RS-3  Replies reach the caller in the order they were given, each once.
//   RS-4  Memory is bounded: kKeptBytesMax of sent replies here, CallerFlow's limits at the caller.
//         A caller that acknowledges nothing loses what is older, and can then not resume from
//         there.
//   RS-5  Once a new connection is welcomed, what the one before it still brings is not looked at.
//
// TakeCall, AckDue and Told are for the one thread that reads; all else under the owner's mutex. A
// call's acknowledgement takes effect with the next reply, so that reading takes no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "actors/core/call/call_control.h"
#include "actors/core/session/send_window.h"

namespace troupe::actors {

class ActorSession {
 public:
  static constexpr std::size_t kKeptBytesMax = 32u << 20;
  /// An acknowledgement goes out by itself when this much was received since the last reply.
  static constexpr std::size_t kAckBytes = 1u << 20;

  /// False: not the next call.
  bool TakeCall(std::uint64_t sequence, std::uint64_t ack, std::size_t bytes) {
    if (sequence != received() + 1) return false;
    received_.store(sequence, std::memory_order_relaxed);
    acknowledged_.store(ack, std::memory_order_relaxed);
    bytes_since_ack_ += bytes;
    return true;
  }
  /// After TakeCall, before the call runs: whether its caller should be told by an acknowledgement.
  bool AckDue() const { return bytes_since_ack_ >= kAckBytes; }
  /// After AckDue, or when the call was answered at once.
  void Told() { bytes_since_ack_ = 0; }
  std::uint64_t received() const { return received_.load(std::memory_order_relaxed); }

  /// `frame` is kFrameHeadBytes of room, then the body.
  void Reply(ByteBuffer& frame, std::uint16_t flags, std::uint64_t sequence) {
    // A lie ends what was kept, and harms its teller alone.
    static_cast<void>(window_.Acknowledge(acknowledged_.load(std::memory_order_relaxed)));
    SealFrame(frame, flags, sequence, received());
    window_.Append(frame.view());
    if (window_.kept_bytes() > kKeptBytesMax) window_.Trim(kKeptBytesMax, connected_);
  }
  /// False: of replies that were never sent.
  bool Acknowledge(std::uint64_t replies) { return window_.Acknowledge(replies); }
  void AppendControl(ControlKind kind) {
    window_.AppendControl(ControlFrame(kind, {}, received()));
  }
  /// A new connection of the session: the caller has received `replies`.
  SendWindow::Rewound Resume(std::uint64_t replies) {
    const SendWindow::Rewound rewound = window_.Rewind(replies);
    if (rewound == SendWindow::Rewound::kOk) {
      window_.Open(ControlFrame(ControlKind::kWelcome, {}, received()), /*held=*/false);
      connected_ = true;
    }
    return rewound;
  }
  /// The connection is gone: nothing is to be sent until Resume.
  void Disconnected() {
    window_.Open({}, /*held=*/true);
    connected_ = false;
  }

  SendWindow& window() { return window_; }
  const SendWindow& window() const { return window_; }

 private:
  std::atomic<std::uint64_t> received_{0};      // calls
  std::atomic<std::uint64_t> acknowledged_{0};  // replies, as the last call said
  std::size_t bytes_since_ack_ = 0;             // the calls'; the reading thread's
  SendWindow window_;
  bool connected_ = true;
};

}  // namespace troupe::actors
