// Frames: what every connection of this project carries (decision 26).
//
// Header, 16 bytes, little endian:
//   0 magic u16 'TR' | 2 version u8 | 3 kind u8 | 4 flags u16 | 6 extension words u16
//   8 body bytes u32 | 12 attachment bytes u32
// then extensions (8-byte words), body (a multiple of 8), attachment (raw). Everything before the
// body is parsed and held against the limits before anything is allocated or decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/wire/limits.h"
#include "runtime/wire/messages.h"

namespace troupe::wire {

inline constexpr std::size_t kHeaderBytes = 16;
inline constexpr std::uint16_t kMagic = 0x5254;  // "TR" on the wire

enum class FrameKind : std::uint8_t { kControl = 0, kCall = 1, kReply = 2, kShape = 3 };

struct FrameHeader {
  std::uint8_t version = kProtocolVersion;
  FrameKind kind = FrameKind::kControl;
  std::uint16_t flags = 0;
  std::uint16_t extension_words = 0;
  std::uint32_t body_bytes = 0;
  std::uint32_t attachment_bytes = 0;

  /// Bytes that follow the header.
  std::size_t rest() const {
    return std::size_t{8} * extension_words + body_bytes + attachment_bytes;
  }
};

struct FrameLimits {
  std::size_t body_bytes_max = kBodyBytesMax;
  std::size_t attachment_bytes_max = kAttachmentBytesMax;
  std::size_t frame_bytes_max = kBodyBytesMax + kAttachmentBytesMax;
};
/// Limits for a peer before it is authenticated.
inline constexpr FrameLimits kUnauthenticatedLimits{kUnauthenticatedFrameBytesMax, 0,
                                                    kUnauthenticatedFrameBytesMax};

/// Writes the header's 16 bytes to `out`.
void EncodeHeader(const FrameHeader& header, char* out);
/// Reads 16 bytes. Errors: kInvalid (magic, version, kind, alignment), kTooLarge (a limit).
StatusOr<FrameHeader> DecodeHeader(const char* bytes, const FrameLimits& limits);

/// A whole control frame: header, body, attachment.
StatusOr<std::string> EncodeFrame(const Message& message);
/// The message of one whole control frame, as a datagram carries it (zygote socket).
StatusOr<Message> DecodeFrame(std::string_view frame, const FrameLimits& limits = {});

/// Cuts a byte stream into control messages. One per connection, owned by its loop.
///   reader.Feed(bytes);
///   while (auto next = reader.Next()) { if (!next->ok()) close; else handle(**next); }
/// After an error it yields nothing more: the connection must be closed.
class FrameReader {
 public:
  explicit FrameReader(FrameLimits limits = {}) : limits_(limits) {}
  void set_limits(FrameLimits limits) { limits_ = limits; }
  void Feed(std::string_view bytes);
  /// The next whole message, nullopt when more bytes are needed.
  std::optional<StatusOr<Message>> Next();
  /// Bytes of an unfinished frame; 0 at a frame boundary, where an EOF is clean.
  std::size_t pending_bytes() const { return buffer_.size() - taken_; }

 private:
  FrameLimits limits_;
  std::string buffer_;
  std::size_t taken_ = 0;
  bool broken_ = false;
};

}  // namespace troupe::wire
