// The compact call frame: the project's 16-byte header, then sequence and cumulative
// acknowledgement, then a body padded to 8 bytes. Pure: no socket, no clock, no Python.
//
//   offset 0  u16 magic 'TR'   u8 version   u8 kind (1 = call)   u16 flags   u16 extension words
//          8  u32 body bytes (a multiple of 8)   u32 attachment bytes (always 0 here)
//         16  u64 sequence of the call
//         24  u64 acknowledgement: frames received from the other side
//         32  extension words (8 bytes each, skipped by a receiver that does not know them), body
//
// A call's body starts with CallHead; a kNamed call carries its method and keyword names in band
// and thereby defines the id in its head, unless that is kNoShape, as it is of one with many
// keywords. A reply's body is one encoded value, or what its flags say. All numbers little endian.
//
// Whatever a peer sends is checked against CallLimits; what does not pass is named in words and
// ends that connection, never the process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "actors/core/call/byte_buffer.h"
#include "runtime/base/status.h"

namespace troupe::actors {

inline constexpr std::uint16_t kFrameMagic = 0x5254;
inline constexpr std::uint8_t kFrameVersion = 2;
inline constexpr std::uint8_t kFrameKindCall = 1;
inline constexpr std::size_t kFrameHeadBytes = 32;
inline constexpr std::uint16_t kNoShape = 0xFFFF;

enum FrameFlag : std::uint16_t {
  kFlagNone = 0,
  kFlagReply = 1,         // answers the call of the same sequence
  kFlagNamed = 2,         // a call that carries its names
  kFlagTaskError = 4,     // a reply: the method raised
  kFlagRuntimeError = 8,  // a reply: u16 code, u16 0, u32 length, text
  kFlagGoodbye = 16,      // the last frame before the sender closes; body as kFlagRuntimeError
  kFlagControl = 32,      // neither call nor reply (call_control.h)
  kFlagItem = 64,         // a reply that is not the call's last (item_stream.h)
  kFlagEnd = 128,         // never sent: in a slot, where a stream of items ends
  kFlagObjects = 256,     // a call or a reply that names objects (object_store.h)
  // never sent: in a slot, the error is that of an argument, and the call was not made
  kFlagOfArgument = 512,
};

/// A reply that is an error, of either kind.
inline constexpr std::uint16_t kErrorFlags = kFlagTaskError | kFlagRuntimeError;

struct CallLimits {
  std::uint32_t frame_bytes_max = 16u << 20;
  std::uint16_t shapes_max = 256;
  std::uint16_t args_max = 0xFFFF;
  std::uint16_t keywords_max = 0xFFFF;
  // a call with more carries its names each time: shapes are kept
  std::uint16_t shape_keywords_max = 255;
  std::uint16_t name_bytes_max = 1024;
  std::uint16_t extension_words_max = 64;
};

/// Bytes of a call's frame that are kept free of arguments copied into it: room for all else.
inline constexpr std::size_t kOtherArguments = 64u << 10;
/// How many bytes of a value a call's frame has room for, where other values in it take `used`.
inline std::size_t RoomBeside(std::size_t used) {
  const std::size_t most = CallLimits().frame_bytes_max - kOtherArguments;
  return most - std::min(most, used);
}
/// Why a call with arguments of so many bytes is refused: for people.
std::string ArgumentsTooLarge(std::string_view method, std::size_t bytes, const CallLimits& limits);

struct FrameHead {
  std::uint16_t flags = 0;
  std::uint16_t extension_words = 0;
  std::uint32_t body_bytes = 0;
  std::uint64_t sequence = 0;
  std::uint64_t ack = 0;
};

/// First bytes of a call's body.
struct CallHead {
  std::uint16_t shape = kNoShape;
  std::uint16_t arg_count = 0;  // positional and keyword values together
  std::uint16_t keyword_count = 0;
  std::uint16_t mark = 0;  // not 0: the call is recorded on both sides (runtime/obs/trace.h)
};
static_assert(sizeof(CallHead) == 8);

inline std::size_t PaddedTo8(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

inline void WriteFrameHead(char* at, const FrameHead& head) {
  const std::uint64_t first = std::uint64_t{kFrameMagic} | std::uint64_t{kFrameVersion} << 16 |
                              std::uint64_t{kFrameKindCall} << 24 |
                              std::uint64_t{head.flags} << 32 |
                              std::uint64_t{head.extension_words} << 48;
  const std::uint64_t second = head.body_bytes;
  std::memcpy(at, &first, 8);
  std::memcpy(at + 8, &second, 8);
  std::memcpy(at + 16, &head.sequence, 8);
  std::memcpy(at + 24, &head.ack, 8);
}

/// Fills the first kFrameHeadBytes of `frame` (room for the head, then the body) and pads its end.
inline void SealFrame(ByteBuffer& frame, std::uint16_t flags, std::uint64_t sequence,
                      std::uint64_t ack) {
  const std::size_t body = frame.size() - kFrameHeadBytes;
  const std::size_t padding = PaddedTo8(body) - body;
  if (padding != 0) std::memset(frame.Extend(padding), 0, padding);
  FrameHead head;
  head.flags = flags;
  head.body_bytes = static_cast<std::uint32_t>(body + padding);
  head.sequence = sequence;
  head.ack = ack;
  WriteFrameHead(frame.data(), head);
}

struct Frame {
  FrameHead head;
  std::string_view body;
  std::size_t bytes = 0;  // head, extensions and body together
};

enum class ParseOutcome { kFrame, kNeedMore, kBad };

/// Reads the frame at the front of `bytes`. kNeedMore: `frame->bytes` is how many bytes make it
/// whole (or kFrameHeadBytes while even that is unknown). kBad: `*why` says what the peer did
/// wrong.
ParseOutcome ParseFrame(std::string_view bytes, const CallLimits& limits, Frame* frame,
                        std::string* why);

/// The part of a call's body before its values.
struct CallPrefix {
  CallHead head;
  std::string_view method;                 // kNamed calls only
  std::vector<std::string_view> keywords;  // kNamed calls only
  std::string_view values;
};
/// Checks and splits a call's body; views point into it. An error names the broken rule.
Status ParseCall(const Frame& frame, const CallLimits& limits, CallPrefix* call);

/// Body of an error reply: appended to `body`.
void AppendRuntimeError(ByteBuffer& body, ErrorCode code, std::string_view text);
struct RuntimeErrorView {
  ErrorCode code = ErrorCode::kInternal;
  std::string_view text;
};
/// Reads the body of a reply with kFlagRuntimeError; a malformed one reads as kInternal with a text
/// that says so.
RuntimeErrorView ReadRuntimeError(std::string_view body);

}  // namespace troupe::actors
