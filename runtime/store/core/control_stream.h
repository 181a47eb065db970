// A pair's control stream, as one of its ends sees it: frames it sent that are not yet
// acknowledged, and how far it has applied received ones. Pure.
//
//   CS-1  Frames are numbered 1, 2, ... A frame is applied if and only if it is the one after the
//   last
//         applied; one that was applied is a repeat and changes nothing; anything else is a gap,
//         which no honest peer leaves within a connection.
//   CS-2  A frame is kept until it is acknowledged. A resumed connection's hello says how far the
//   other
//         side applied; what is left is sent again, in order.
//   CS-3  An acknowledgement never goes back and never beyond what was sent.
#pragma once

#include <cstdint>
#include <deque>

#include "runtime/store/core/message.h"

namespace troupe::store {

class ControlStream {
 public:
  enum class Taken { kApply, kRepeat, kGap };

  /// Numbers a frame and keeps it.
  const ControlFrame& Push(ControlBody body);
  /// Decides on frame `n` of the other side; kApply counts it as applied.
  Taken Take(std::uint64_t n);
  /// The other side has applied all frames up to n. False: it cannot have (CS-3).
  bool Acknowledge(std::uint64_t n);

  std::uint64_t sent() const { return sent_; }
  std::uint64_t applied() const { return applied_; }
  std::uint64_t acknowledged() const { return sent_ - kept_.size(); }
  const std::deque<ControlFrame>& kept() const { return kept_; }

 private:
  std::uint64_t sent_ = 0;
  std::uint64_t applied_ = 0;
  std::deque<ControlFrame> kept_;
};

}  // namespace troupe::store
