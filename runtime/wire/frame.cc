#include "runtime/wire/frame.h"

#include <absl/strings/str_format.h>

#include <cstring>
#include <utility>

#include "runtime/wire/codec.h"

namespace troupe::wire {
namespace {

template <class T>
void Put(char* out, T value) {
  std::memcpy(out, &value, sizeof value);  // little endian: the only kind of host supported
}
template <class T>
T Get(const char* in) {
  T value;
  std::memcpy(&value, in, sizeof value);
  return value;
}

Status CheckSizes(const FrameHeader& header, const FrameLimits& limits) {
  if (header.body_bytes > limits.body_bytes_max) {
    return MakeError(ErrorCode::kTooLarge,
                     absl::StrFormat("a frame's body of %d bytes is over the limit of %d",
                                     header.body_bytes, limits.body_bytes_max));
  }
  if (header.attachment_bytes > limits.attachment_bytes_max) {
    return MakeError(ErrorCode::kTooLarge,
                     absl::StrFormat("a frame's attachment of %d bytes is over the limit of %d",
                                     header.attachment_bytes, limits.attachment_bytes_max));
  }
  if (header.extension_words > kExtensionWordsMax || header.rest() > limits.frame_bytes_max) {
    return MakeError(ErrorCode::kTooLarge,
                     absl::StrFormat("a frame of %d bytes is over the limit of %d", header.rest(),
                                     limits.frame_bytes_max));
  }
  return absl::OkStatus();
}

StatusOr<Message> DecodeRest(const FrameHeader& header, std::string_view rest) {
  if (header.kind != FrameKind::kControl) {
    return MakeError(ErrorCode::kInvalid, "a call frame arrived on a control connection");
  }
  const std::size_t body_at = std::size_t{8} * header.extension_words;
  StatusOr<Message> message = DecodeBody(rest.substr(body_at, header.body_bytes));
  if (message.ok()) message->attachment = rest.substr(body_at + header.body_bytes);
  return message;
}

}  // namespace

void EncodeHeader(const FrameHeader& header, char* out) {
  Put<std::uint16_t>(out, kMagic);
  Put<std::uint8_t>(out + 2, header.version);
  Put<std::uint8_t>(out + 3, static_cast<std::uint8_t>(header.kind));
  Put<std::uint16_t>(out + 4, header.flags);
  Put<std::uint16_t>(out + 6, header.extension_words);
  Put<std::uint32_t>(out + 8, header.body_bytes);
  Put<std::uint32_t>(out + 12, header.attachment_bytes);
}

StatusOr<FrameHeader> DecodeHeader(const char* bytes, const FrameLimits& limits) {
  if (Get<std::uint16_t>(bytes) != kMagic) {
    return MakeError(ErrorCode::kInvalid,
                     "the peer does not speak this protocol (no frame header where one must be)");
  }
  FrameHeader header;
  header.version = Get<std::uint8_t>(bytes + 2);
  const auto kind = Get<std::uint8_t>(bytes + 3);
  header.kind = static_cast<FrameKind>(kind);
  header.flags = Get<std::uint16_t>(bytes + 4);
  header.extension_words = Get<std::uint16_t>(bytes + 6);
  header.body_bytes = Get<std::uint32_t>(bytes + 8);
  header.attachment_bytes = Get<std::uint32_t>(bytes + 12);
  if (header.version < kProtocolVersionMin || header.version > kProtocolVersion) {
    return MakeError(ErrorCode::kVersionMismatch,
                     absl::StrFormat("the peer speaks protocol version %d; this one %d to %d",
                                     header.version, kProtocolVersionMin, kProtocolVersion));
  }
  if (kind > static_cast<std::uint8_t>(FrameKind::kShape)) {
    return MakeError(ErrorCode::kInvalid, absl::StrFormat("unknown frame kind %d", kind));
  }
  if (header.body_bytes % 8 != 0 && header.kind == FrameKind::kControl) {
    return MakeError(ErrorCode::kInvalid, "a frame's body is not a multiple of 8 bytes");
  }
  TROUPE_TRY(CheckSizes(header, limits));
  return header;
}

StatusOr<std::string> EncodeFrame(const Message& message) {
  if (message.attachment.size() > kAttachmentBytesMax) {
    return MakeError(ErrorCode::kTooLarge,
                     absl::StrFormat("an attachment of %d bytes is over the limit of %d",
                                     message.attachment.size(), kAttachmentBytesMax));
  }
  const std::size_t attached = message.attachment.size();
  TROUPE_ASSIGN(std::string frame, EncodeBody(message, kHeaderBytes, attached));
  FrameHeader header;
  header.body_bytes = static_cast<std::uint32_t>(frame.size() - kHeaderBytes - attached);
  header.attachment_bytes = static_cast<std::uint32_t>(attached);
  EncodeHeader(header, frame.data());
  message.attachment.copy(frame.data() + frame.size() - attached, attached);
  return frame;
}

StatusOr<Message> DecodeFrame(std::string_view frame, const FrameLimits& limits) {
  if (frame.size() < kHeaderBytes) {
    return MakeError(ErrorCode::kInvalid, "a frame is shorter than its header");
  }
  TROUPE_ASSIGN(const FrameHeader header, DecodeHeader(frame.data(), limits));
  const std::string_view rest = frame.substr(kHeaderBytes);
  if (rest.size() != header.rest()) {
    return MakeError(ErrorCode::kInvalid, absl::StrFormat("a frame announces %d bytes and has %d",
                                                          header.rest(), rest.size()));
  }
  return DecodeRest(header, rest);
}

void FrameReader::Feed(std::string_view bytes) {
  if (broken_) return;
  if (taken_ > 0 && taken_ == buffer_.size()) {
    buffer_.clear();
    taken_ = 0;
  } else if (taken_ > (1u << 16)) {
    buffer_.erase(0, taken_);
    taken_ = 0;
  }
  buffer_.append(bytes);
}

std::optional<StatusOr<Message>> FrameReader::Next() {
  if (broken_ || pending_bytes() < kHeaderBytes) return std::nullopt;
  const char* start = buffer_.data() + taken_;
  StatusOr<FrameHeader> header = DecodeHeader(start, limits_);
  if (!header.ok()) {
    broken_ = true;
    return StatusOr<Message>(header.status());
  }
  if (pending_bytes() < kHeaderBytes + header->rest()) return std::nullopt;
  StatusOr<Message> message =
      DecodeRest(*header, std::string_view(start + kHeaderBytes, header->rest()));
  taken_ += kHeaderBytes + header->rest();
  broken_ = !message.ok();
  return message;
}

}  // namespace troupe::wire
