// Decides the error of a call whose actor never replied: the head's verdict, NOT_SENT or
// MAYBE_EXECUTED. Pure.
//
//   CF-1  A channel is open, then ended, then over; it never goes back. While it is open, a call is
//         sent, and nothing is said of it here.
//   CF-2  The end of the connection alone is not death. Calls without an answer wait for what comes
//         next, and so do calls that come before their caller has seen the end, as far as there is
//         room; those beyond are told NOT_SENT at once.
//   CF-3  A verdict is what every call without an answer is told, sent or not, and every later
//         call.
//   CF-4  Without a verdict each call is told its own fate: MAYBE_EXECUTED if a socket took all of
//         its frame, else NOT_SENT. So a call that is told NOT_SENT never ran.
//   CF-5  A call that comes once the channel is over is told at once: the verdict, else NOT_SENT.
//   CF-6  Calls are told once. A verdict that comes after that is for later calls alone; of several
//         verdicts the last one counts.
//   CF-7  An observer hears whether a call was sent whatever the call is told.
//
// Each channel has one, guarded by its mutex. Positions are bytes of the session, as SendWindow
// counts them. Calls that are answered, or wait, are in the channel's ring: this only says what
// those that are left are told.
//
//   CallFates fates("actor Counter(1)");
//   fates.End("reset by peer", window.sent_offset());         // before the window is cleared
//   if (fates.Finish("no word came")) {                       // once
//     while (...) Tell(call, fates.OfCall(call.end_offset));  // every call that is left
//   }
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::actors {

class CallFates {
 public:
  /// The position of a call that was never given to the session.
  static constexpr std::uint64_t kNeverSent = std::numeric_limits<std::uint64_t>::max();

  /// `description` is the actor as errors name it.
  explicit CallFates(std::string description) : description_(std::move(description)) {}

  bool open() const { return state_ == State::kOpen; }
  /// Ended, and calls wait for what is said of the actor.
  bool undecided() const { return state_ == State::kEnded; }
  /// How the connection ended, for people; empty while it has not.
  const std::string& end_reason() const { return end_reason_; }

  enum class Arrival {
    kSend,  // passed to the session
    kWait,  // waits, as a call that is never sent
    kTell,  // answered with OfNewCall at once
  };
  /// Returns the fate of a call that is made now. `room`: a further call may wait.
  Arrival Arrives(bool room) const {
    if (state_ == State::kOpen) return Arrival::kSend;
    return state_ == State::kEnded && room ? Arrival::kWait : Arrival::kTell;
  }

  /// The connection ended for good, and sockets had taken the session's first `written` bytes.
  /// False: it had ended before, and nothing changes.
  bool End(std::string_view reason, std::uint64_t written);
  /// The verdict on the actor, as the flags and the body of an answer.
  void Judge(std::uint16_t flags, std::string_view body);
  /// Nothing more is waited for. True: now each call that is left is to be told OfCall. False: they
  /// have been told. `text` is why, for calls without a verdict.
  bool Finish(std::string_view text);

  struct Fate {
    std::uint16_t flags;    // a frame's
    std::string_view body;  // valid until the next change
    bool sent;              // all of its frame: the actor may have run it
  };
  /// Returns the error, after Finish, of a call whose frame ended at that position.
  Fate OfCall(std::uint64_t end_offset) const {
    const bool sent = end_offset <= written_;
    return FateBy(sent ? sent_ : unsent_, sent);
  }
  /// Returns the error of a call for which Arrives said kTell.
  Fate OfNewCall() const { return FateBy(unsent_, /*sent=*/false); }

 private:
  enum class State { kOpen, kEnded, kOver };
  struct Told {
    std::uint16_t flags = 0;
    std::string body;
  };
  static Fate FateBy(const Told& told, bool sent) { return {told.flags, told.body, sent}; }
  Told Error(bool sent, std::string_view text) const;

  const std::string description_;
  State state_ = State::kOpen;
  bool judged_ = false;
  std::uint64_t written_ = 0;
  std::string end_reason_;
  Told sent_;  // error of a call whose whole frame was taken
  Told unsent_;  // error of any other call
};

}  // namespace troupe::actors
