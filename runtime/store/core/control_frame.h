// The bytes of a control frame: the project's 16-byte header, then number and cumulative
// acknowledgement, then a body padded to 8 bytes. Pure.
//
//   offset 0  u16 magic 'TR'   u8 version   u8 kind (4 = objects)   u16 type   u16 flags (1 =
//   clean)
//          8  u32 body bytes (a multiple of 8)   u32 0
//         16  u64 number in the stream (0: an acknowledgement alone)   24  u64 acknowledgement   32
//         body
//
// All numbers little endian. What a type's body holds: control_frame.cc. Whatever a peer sends is
// held against ControlLimits before anything is allocated; what does not pass is named in words and
// ends that connection, never the process. There is one encoding of a frame: what was parsed
// encodes to the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/store/core/message.h"

namespace troupe::store {

inline constexpr std::size_t kControlHeadBytes = 32;
inline constexpr std::uint8_t kControlFrameKind = 4;

struct ControlLimits {
  std::uint32_t frame_bytes_max = 16u << 20;
  std::uint32_t locations_max = 4096;
  std::uint32_t contained_max = 1u << 16;
};

struct ReceivedFrame {
  std::uint64_t acknowledged = 0;
  bool alone = false;  // an acknowledgement without a frame
  ControlFrame frame;
  std::size_t bytes = 0;  // the whole frame's
};

void AppendFrame(std::string& out, const ControlFrame& frame, std::uint64_t acknowledged);
void AppendAck(std::string& out, std::uint64_t acknowledged);

enum class FrameOutcome { kFrame, kNeedMore, kBad };
/// Reads the frame at the front of `bytes`. kNeedMore: `received->bytes` is how many make it whole
/// (or kControlHeadBytes while even that is unknown). kBad: `*why` says what the peer did wrong.
FrameOutcome ReadFrame(std::string_view bytes, const ControlLimits& limits, ReceivedFrame* received,
                       std::string* why);

}  // namespace troupe::store
