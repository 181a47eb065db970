// Frames of the two ends of a call session on its bulk link: the connection beside a call
// connection between hosts that carries the bytes of large values (bulk_mover.h). Pure.
//
//   offset 0  u16 magic 'TR'   u8 version   u8 kind (6)   u16 type   u16 0
//          8  u32 body bytes (48)   u32 0
//         16  an object's owner, or a session id   32  u64 an object's number
//         40  u64 offset   48  u64 bytes   56  u64 the bytes of the whole value
//
// All numbers little endian; what a type does not use is 0. After a kPart come its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/ids.h"
#include "runtime/base/status.h"
#include "runtime/store/core/object_id.h"

namespace troupe::actors {

inline constexpr std::uint8_t kBulkFrameKind = 6;
inline constexpr std::size_t kBulkFrameBytes = 64;
/// More is asked for in several parts.
inline constexpr std::uint64_t kBulkPartBytes = 1u << 20;
/// Larger than any memory.
inline constexpr std::uint64_t kBulkValueBytesMax = std::uint64_t{1} << 48;

enum class BulkWord : std::uint16_t {
  kHello = 1,  // the first, of who dialled: which call session this is for
  kRead = 2,   // this part of an object, please
  kPart = 3,  // followed by bytes; fewer than were asked for only at the value's end
  // instead: it is not given (any more), or cannot be read; the offset is that of the kRead
  kGone = 4,
  kTaken = 5,    // a result is not needed any more: it came, or nobody wants it
  kDropped = 6,  // the answer to that
  // References (remote_held.h, remote_lent.h); the offset of kHold and kLetGo is the word's number,
  // which the answer repeats:
  kHold = 7,     // I have it, and shall until I say; bytes: 1: and others have it from me
  kHeld = 8,     // you are known to have it
  kRefused = 9,  // you were not given it
  kLetGo = 10,   // I have it no more
  kLeft = 11,    // so you have
  kWant = 12,  // request for the value, once it is there
  kInside = 13,  // this one lies inside the value that the next kReady tells of
  // The value is there: offset: its flags; bytes: how many lie inside; the whole: its bytes, to be
  // asked for by kRead
  kReady = 14,
};

struct BulkFrame {
  BulkWord word = BulkWord::kHello;
  SessionId session;  // in kHello alone
  store::ObjectId id;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;
};

/// A word of an object, or of a part of it.
BulkFrame WordOf(BulkWord word, const store::ObjectId& id, std::uint64_t offset = 0);

void AppendBulkFrame(std::string& out, const BulkFrame& frame);
/// Reads kBulkFrameBytes. An error says what the peer did wrong.
StatusOr<BulkFrame> ReadBulkFrame(std::string_view bytes);

}  // namespace troupe::actors
