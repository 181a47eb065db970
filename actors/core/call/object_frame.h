// Frames of two processes of one host on their object link besides the control frames of
// runtime/store: who they are, and which segments' descriptors go over. Pure.
//
//   offset 0  u16 magic 'TR'   u8 version   u8 kind (5)   u16 type   u16 0
//          8  u32 body bytes (48)   u32 0
//         16  a process id   32  another   48  u64   56  u64
//
// All numbers little endian. A link carries these and control frames (kind 4) in any order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/ids.h"

namespace troupe::actors {

inline constexpr std::uint8_t kObjectFrameKind = 5;
inline constexpr std::size_t kObjectFrameBytes = 64;

enum class ObjectWord : std::uint16_t {
  // the first: a: who I am, b: whom I mean, x: frames applied, y: when this link was dialled
  kHello = 1,
  kRefused = 2,  // instead of a hello: nothing goes between us any more
  kWant = 3,     // the descriptor of a's segment x, please
  kHere = 4,  // the descriptor comes with this frame; y: its bytes
  kGone = 5,  // the segment is not here
  kRetire = 6,   // a's segment x is closed: let go of it once no view is left
  // a's life x, which I borrow, is with another host from me (y: 1), or is no more (0)
  kLentOn = 7,
};

struct ObjectFrame {
  ObjectWord word = ObjectWord::kHello;
  ProcessId a;
  ProcessId b;
  std::uint64_t x = 0;
  std::uint64_t y = 0;
};

void AppendObjectFrame(std::string& out, const ObjectFrame& frame);

enum class ObjectParse { kFrame, kNeedMore, kControl, kBad };
/// Reads the frame at the front of `bytes`. kControl: it is one of runtime/store's. kBad: `*why`
/// says what the peer did wrong.
ObjectParse ReadObjectFrame(std::string_view bytes, ObjectFrame* frame, std::string* why);

}  // namespace troupe::actors
