// The limits and batching rules of both halves of a channel. Pure values and predicates.
//
//   FC-1  A caller holds at most kUnsentMax bytes (plus one frame) that the socket has not taken,
//         kKeptMax bytes (plus one frame) of which the actor has not said that it received them,
//         and kOutstandingMax calls; over any of them, issuing waits for room. Before the actor is
//         there it holds kAimlessMax bytes.
//   FC-2  Room opens again at half the byte limits and three quarters of the call limit, so that a
//         waiting issuer is not woken for every frame.
//   FC-3  An actor reads a peer no further while that peer's unsent replies exceed kRepliesMax, or
//         its calls in execution reach kRunningMax; other peers are not touched.
//   FC-4  A call is written at once when nothing else is outstanding, otherwise with the 32nd frame
//         or at 64 KiB, whichever is first.
//   FC-5  Replies are written at the end of a batch, at 64 KiB, or when the oldest is 50 us old.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/time.h"

namespace troupe::actors {

struct CallerFlow {
  static constexpr std::size_t kUnsentMax = 1u << 20;
  static constexpr std::size_t kKeptMax = 32u << 20;
  static constexpr std::size_t kAimlessMax = 128u << 20;
  static constexpr std::size_t kOutstandingMax = 1u << 18;
  static constexpr std::size_t kFramesPerFlush = 32;
  static constexpr std::size_t kBytesPerFlush = 64u << 10;
  static constexpr std::size_t kDrainFrom = 2048;

  /// Returns true if a caller has to wait for room before it issues a call (FC-1).
  static bool Full(std::size_t unsent, std::size_t kept, std::size_t outstanding) {
    return unsent >= kUnsentMax || kept >= kKeptMax || outstanding >= kOutstandingMax;
  }
  /// Returns true if a caller that does not know yet where its actor is, and can send nothing, has
  /// to wait.
  static bool FullAimless(std::size_t kept, std::size_t outstanding) {
    return kept >= kAimlessMax || outstanding >= kOutstandingMax;
  }
  static bool HasRoom(std::size_t unsent, std::size_t kept, std::size_t outstanding) {
    return unsent <= kUnsentMax / 2 && kept <= kKeptMax / 2 &&
           outstanding <= kOutstandingMax / 4 * 3;
  }
  /// `outstanding` without the call just added; `frames` and `bytes` unflushed, with it.
  static bool FlushNow(std::size_t outstanding, std::size_t frames, std::size_t bytes) {
    return outstanding == 0 || frames >= kFramesPerFlush || bytes >= kBytesPerFlush;
  }
  /// After a flush while issuing: read replies as well, or the actor stalls on its full socket.
  static bool Drain(std::size_t outstanding, bool would_block) {
    return would_block || outstanding > kDrainFrom;
  }
};

struct ActorFlow {
  static constexpr std::size_t kRepliesMax = 4u << 20;
  static constexpr std::size_t kRunningMax = 4096;
  static constexpr std::size_t kBytesPerFlush = 64u << 10;
  static constexpr Duration kHold = std::chrono::microseconds(50);
  static constexpr unsigned kCallsPerClockRead = 8;

  static bool MayRun(std::size_t unsent_replies, std::size_t running) {
    return unsent_replies <= kRepliesMax && running < kRunningMax;
  }
};

}  // namespace troupe::actors
