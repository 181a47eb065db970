// The frames of one direction of a call session, from the moment they are made until the other side
// has said that it received them, over however many connections. Pure.
//
//   SW-1  Unsent gives every frame's bytes in the order of Append, each once per connection.
//   SW-2  A frame stays here until it is acknowledged; Rewind makes what the other side did not
//         receive the next to be sent, beginning with a whole frame.
//   SW-3  The n-th Append is frame n; control frames (kFlagControl) have no number, and are dropped
//         with what was before them.
//   SW-4  An acknowledgement of what was never sent is refused.
//   SW-5  Trim bounds the memory: the oldest sent frames go, and a Rewind to before them says
//         kGone.
//
// A connection begins with an opening (who this is, where to go on), sent before all frames; while
// the window is held, only that is. Positions are bytes ever appended, so that "was it sent" is a
// comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "actors/core/call/byte_buffer.h"
#include "actors/core/call/call_frame.h"

namespace troupe::actors {

class SendWindow {
 public:
  /// Memory that an empty window keeps.
  static constexpr std::size_t kIdleBytes = 1u << 20;

  void Append(std::string_view frame) {
    frames_.Append(frame.data(), frame.size());
    ++appended_;
  }
  void AppendControl(std::string_view frame) { frames_.Append(frame.data(), frame.size()); }

  /// Returns the bytes to write next; empty: nothing may be written, or there is nothing.
  std::string_view Unsent() const {
    if (opening_sent_ < opening_.size()) return std::string_view(opening_).substr(opening_sent_);
    if (held_) return {};
    return {frames_.data() + sent_, frames_.size() - sent_};
  }
  /// The connection took `bytes` of Unsent.
  void Sent(std::size_t bytes) {
    if (opening_sent_ < opening_.size()) {
      opening_sent_ += bytes;
    } else {
      sent_ += bytes;
    }
  }

  /// The other side received the first `frames` frames. False: it says so of some that were never
  /// sent (those that were are gone).
  bool Acknowledge(std::uint64_t frames) { return frames <= released_ || Release(frames); }

  enum class Rewound { kOk, kGone, kNeverSent };
  /// The other side received exactly the first `frames` frames: the rest is to be sent.
  Rewound Rewind(std::uint64_t frames) {
    if (frames < released_) return Rewound::kGone;
    if (!Acknowledge(frames)) return Rewound::kNeverSent;
    while (sent_ != 0 && IsControl(0)) Drop(FrameBytes(0));
    sent_ = 0;
    return Rewound::kOk;
  }
  /// A connection begins: `opening`, then the frames, or those once Release is called.
  void Open(std::string opening, bool held) {
    opening_ = std::move(opening);
    opening_sent_ = 0;
    held_ = held;
  }
  void LetGo() { held_ = false; }

  /// Drops the oldest frames, sent ones only unless there is no connection, until `bytes_max` bytes
  /// are kept or none is left to drop.
  void Trim(std::size_t bytes_max, bool connected) {
    while (frames_.size() > bytes_max && (!connected || FrameBytes(0) <= sent_)) {
      if (!IsControl(0)) ++released_;
      Drop(FrameBytes(0));
    }
  }
  void Clear() {
    Drop(frames_.size());
    sent_ = 0;
  }

  std::size_t unsent_bytes() const { return frames_.size() - sent_; }
  std::size_t kept_bytes() const { return frames_.size(); }
  std::uint64_t appended() const { return appended_; }
  /// Frames that are here no longer.
  std::uint64_t released() const { return released_; }
  std::uint64_t end_offset() const { return dropped_bytes_ + frames_.size(); }
  std::uint64_t sent_offset() const { return dropped_bytes_ + sent_; }

 private:
  std::size_t FrameBytes(std::size_t at) const {
    std::uint32_t body;
    std::memcpy(&body, frames_.data() + at + 8, sizeof body);
    return kFrameHeadBytes + body;  // this side sends no extensions
  }
  bool IsControl(std::size_t at) const {
    std::uint16_t flags;
    std::memcpy(&flags, frames_.data() + at + 4, sizeof flags);
    return (flags & kFlagControl) != 0;
  }
  bool Release(std::uint64_t frames) {
    std::size_t at = 0;
    bool good = true;
    while (good && released_ < frames) {
      good = at < sent_ && at + FrameBytes(at) <= sent_;
      if (!good) break;
      if (!IsControl(at)) ++released_;
      at += FrameBytes(at);
    }
    Drop(at);
    return good;
  }
  void Drop(std::size_t bytes) {
    frames_.Consume(bytes);
    frames_.Shrink(kIdleBytes);
    dropped_bytes_ += bytes;
    sent_ -= bytes < sent_ ? bytes : sent_;
  }

  ByteBuffer frames_;  // frames: sent ones that are kept, then unsent ones
  std::size_t sent_ = 0;        // bytes of frames_ that this connection took
  std::uint64_t appended_ = 0;  // frames
  std::uint64_t released_ = 0;  // frames
  std::uint64_t dropped_bytes_ = 0;
  std::string opening_;
  std::size_t opening_sent_ = 0;
  bool held_ = false;
};

}  // namespace troupe::actors
