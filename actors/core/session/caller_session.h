// The caller's half of a call session: one stream of calls to one actor incarnation and its
// replies, that goes on over a new connection when one ends although both processes live. Pure; the
// actor's half is actor_session.h, and their invariants RS-1 to RS-5 are tested together.
//
// A connection opens with a hello. The first one begins the session under a random id that nobody
// else knows; a later one asks to resume it and says how many replies have been received. The
// actor's welcome says how many calls it has received: what it has not is sent again, what it has
// never is. Until the welcome nothing else may be sent, except on a connection within this host,
// which has no handshake to hide a round trip in: there calls follow the first hello at once, and a
// session whose welcome never came cannot be resumed. Who cannot resume is told why, and its calls
// end as they always did.
#pragma once

#include <cstddef>
#include <cstdint>

#include "actors/core/call/call_control.h"
#include "actors/core/session/send_window.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace troupe::actors {

class CallerSession {
 public:
  /// An acknowledgement goes out by itself when this much was received since the last one.
  static constexpr std::uint64_t kAckReplies = 1024;
  static constexpr std::size_t kAckBytes = 256u << 10;

  /// `waits`: nothing is sent before the first welcome.
  explicit CallerSession(bool waits) : waits_(waits) {}
  /// Sets, before the first connection, whether nothing is sent before the first welcome, for a
  /// session begun before its actor was known. What was queued since must come after the hello: it
  /// waits too.
  void Waits(bool waits) { waits_ = waits || window_.end_offset() != 0; }

  /// A connection is there. `fresh` becomes the id unless there is a session to resume.
  /// `self`, unless nil, is told to the actor with the first hello.
  void Connected(const SessionId& fresh, const ProcessId& self = {});
  /// The connection is gone.
  void Disconnected();
  /// After the end of a connection: whether another one can go on where it stopped.
  bool MayResume() const { return !over_ && (welcomed_ || (waits_ && window_.sent_offset() == 0)); }
  /// Both ends know it by this; nil before that.
  SessionId established() const { return welcomed_ ? id_ : SessionId(); }
  /// The actor said that the session is over.
  bool over() const { return over_; }
  /// Nothing but the hello was sent: the welcome is awaited.
  bool greeting() const { return greeting_; }

  /// A control frame of the actor. An error names what is wrong with it.
  Status Control(const CallControl& control, std::uint64_t ack);
  /// A reply arrived. False: none may, before the welcome.
  bool Reply(std::size_t bytes) {
    ++received_;
    bytes_since_ack_ += bytes;
    return !greeting_;
  }
  /// Calls the actor has received. False: more than were sent.
  bool Acknowledge(std::uint64_t calls) { return window_.Acknowledge(calls); }
  /// The acknowledgement a call carries.
  std::uint64_t TakeAck() {
    acknowledged_ = received_;
    bytes_since_ack_ = 0;
    return received_;
  }
  bool AckDue() const {
    return received_ - acknowledged_ >= kAckReplies || bytes_since_ack_ >= kAckBytes;
  }
  void AppendAck() { window_.AppendControl(ControlFrame(ControlKind::kAck, {}, TakeAck())); }
  /// A word on one call: kTaken or kCancel.
  void AppendOfCall(ControlKind kind, std::uint64_t sequence, std::uint64_t count);
  /// Nobody will ask for more: the actor need not keep it.
  void AppendEnd();

  SendWindow& window() { return window_; }
  const SendWindow& window() const { return window_; }

 private:
  bool waits_;
  SessionId id_;
  SendWindow window_;
  bool welcomed_ = false;  // once: the actor knows the session
  bool greeting_ = false;
  bool over_ = false;               // the actor ended it
  std::uint64_t received_ = 0;      // replies
  std::uint64_t acknowledged_ = 0;  // replies
  std::size_t bytes_since_ack_ = 0;
};

}  // namespace troupe::actors
