// Frames of a call session that are neither calls nor replies. Pure.
//
// A control frame has kFlagControl and sequence 0, counts as no frame of either direction, and
// carries in its head how many frames of the other direction its sender has received. Body, 24
// bytes:
//   u32 kind   u32 resumes (of a hello: 1, else 0)
//   u64 u64 session id (of a hello), process id (of kWho), sequence and count (of kTaken, kCancel)
// What a kind does not use is 0.
#pragma once

#include <cstdint>
#include <string>

#include "actors/core/call/call_frame.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace troupe::actors {

enum class ControlKind : std::uint32_t {
  kHello = 1,    // the caller's first: begins a session or resumes it
  kWelcome = 2,  // the actor's answer
  kAck = 3,      // either side: nothing but the acknowledgement
  kEnd = 4,      // either side: the session is over, keep nothing for it
  kTaken = 5,    // the caller: of the call's items, this many are taken in all (item_window.h)
  kCancel = 6,   // the caller: the call is not wanted any more; count 1: nor what it started
  // the caller, after its first hello: its process, which takes objects (object_store.h;
  // bulk_session.h from another host)
  kWho = 7,
};

struct CallControl {
  ControlKind kind = ControlKind::kAck;
  bool resumes = false;
  SessionId session;
  std::uint64_t sequence = 0;  // the call's, in kTaken and kCancel
  std::uint64_t count = 0;
};

/// Returns a whole frame; `ack`: how many frames of the other direction its sender has received.
std::string ControlFrame(ControlKind kind, const CallControl& control, std::uint64_t ack);
/// Reads a frame with kFlagControl. An error names the broken rule.
StatusOr<CallControl> ParseControl(const Frame& frame);

}  // namespace troupe::actors
