#include "actors/core/call/call_frame.h"

#include <absl/strings/str_format.h>

#include <algorithm>

namespace troupe::actors {
namespace {

template <class T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

ParseOutcome Bad(std::string* why, std::string text) {
  *why = std::move(text);
  return ParseOutcome::kBad;
}

}  // namespace

ParseOutcome ParseFrame(std::string_view bytes, const CallLimits& limits, Frame* frame,
                        std::string* why) {
  frame->bytes = kFrameHeadBytes;
  if (bytes.size() < 16) return ParseOutcome::kNeedMore;
  const std::uint16_t magic = Load<std::uint16_t>(bytes.data());
  if (magic != kFrameMagic) {
    return Bad(why, absl::StrFormat("a frame starts with 0x%04x, not with 0x5254", magic));
  }
  const unsigned version = static_cast<unsigned char>(bytes[2]);
  if (version != kFrameVersion) {
    return Bad(why, absl::StrFormat("frame version %u, this side speaks %u", version,
                                    unsigned{kFrameVersion}));
  }
  const unsigned kind = static_cast<unsigned char>(bytes[3]);
  if (kind != kFrameKindCall) {
    return Bad(why, absl::StrFormat("frame kind %u on a call channel", kind));
  }
  FrameHead& head = frame->head;
  head.flags = Load<std::uint16_t>(bytes.data() + 4);
  head.extension_words = Load<std::uint16_t>(bytes.data() + 6);
  head.body_bytes = Load<std::uint32_t>(bytes.data() + 8);
  const std::uint32_t attachment = Load<std::uint32_t>(bytes.data() + 12);
  if (attachment != 0) return Bad(why, "an attachment on a call channel");
  if (head.extension_words > limits.extension_words_max) {
    return Bad(why, absl::StrFormat("%u extension words, %u allowed", head.extension_words,
                                    limits.extension_words_max));
  }
  if (head.body_bytes > limits.frame_bytes_max) {
    return Bad(why, absl::StrFormat("a frame of %u bytes, %u allowed", head.body_bytes,
                                    limits.frame_bytes_max));
  }
  if (head.body_bytes % 8 != 0) {
    return Bad(why, absl::StrFormat("a body of %u bytes, not a multiple of 8", head.body_bytes));
  }
  const std::size_t before = kFrameHeadBytes + head.extension_words * std::size_t{8};
  frame->bytes = before + head.body_bytes;
  if (bytes.size() < frame->bytes) return ParseOutcome::kNeedMore;
  head.sequence = Load<std::uint64_t>(bytes.data() + 16);
  head.ack = Load<std::uint64_t>(bytes.data() + 24);
  frame->body = bytes.substr(before, head.body_bytes);
  return ParseOutcome::kFrame;
}

Status ParseCall(const Frame& frame, const CallLimits& limits, CallPrefix* call) {
  std::string_view rest = frame.body;
  if (rest.size() < sizeof(CallHead)) {
    return MakeError(ErrorCode::kInvalid, "a call shorter than its head");
  }
  call->head = Load<CallHead>(rest.data());
  rest.remove_prefix(sizeof(CallHead));
  if (call->head.arg_count > limits.args_max) {
    return MakeError(ErrorCode::kInvalid, absl::StrFormat("a call with %u arguments, %u allowed",
                                                          call->head.arg_count, limits.args_max));
  }
  if (call->head.keyword_count > std::min(limits.keywords_max, call->head.arg_count)) {
    return MakeError(ErrorCode::kInvalid,
                     absl::StrFormat("a call with %u keywords of %u arguments",
                                     call->head.keyword_count, call->head.arg_count));
  }
  if (call->head.shape != kNoShape && call->head.shape >= limits.shapes_max) {
    return MakeError(ErrorCode::kInvalid, absl::StrFormat("call shape %u, %u allowed",
                                                          call->head.shape, limits.shapes_max));
  }
  if (call->head.shape != kNoShape && call->head.keyword_count > limits.shape_keywords_max) {
    return MakeError(ErrorCode::kInvalid,
                     absl::StrFormat("a call shape of %u keywords, %u allowed",
                                     call->head.keyword_count, limits.shape_keywords_max));
  }
  call->method = {};
  call->keywords.clear();
  const bool named = (frame.head.flags & kFlagNamed) != 0;
  if (!named && call->head.shape == kNoShape) {
    return MakeError(ErrorCode::kInvalid, "a call with neither a shape nor names");
  }
  for (int i = 0; named && i <= call->head.keyword_count; ++i) {
    const std::size_t length = rest.size() < 2 ? 0 : Load<std::uint16_t>(rest.data());
    if (length == 0 || length > limits.name_bytes_max || rest.size() - 2 < length) {
      return MakeError(ErrorCode::kInvalid, absl::StrFormat("a name of %u bytes (1 to %u allowed)",
                                                            length, limits.name_bytes_max));
    }
    const std::string_view name = rest.substr(2, length);
    rest.remove_prefix(2 + length);
    if (i == 0) {
      call->method = name;
    } else {
      call->keywords.push_back(name);
    }
  }
  call->values = rest;
  return absl::OkStatus();
}

void AppendRuntimeError(ByteBuffer& body, ErrorCode code, std::string_view text) {
  body.AppendValue(static_cast<std::uint32_t>(code));
  body.AppendValue(static_cast<std::uint32_t>(text.size()));
  body.Append(text.data(), text.size());
}

RuntimeErrorView ReadRuntimeError(std::string_view body) {
  RuntimeErrorView error;
  error.text = "the peer sent an error that cannot be read";
  if (body.size() < 8) return error;
  const std::uint32_t code = Load<std::uint32_t>(body.data());
  const std::uint32_t length = Load<std::uint32_t>(body.data() + 4);
  if (code > 0xFFFF || length > body.size() - 8) return error;
  error.code = static_cast<ErrorCode>(code);
  error.text = body.substr(8, length);
  return error;
}

std::string ArgumentsTooLarge(std::string_view method, std::size_t bytes,
                              const CallLimits& limits) {
  return absl::StrFormat(
      "the arguments of %s() take %.1f MiB, one call may take %g MiB\n  pass large data in parts",
      method, bytes / 1048576.0, limits.frame_bytes_max / 1048576.0);
}

}  // namespace troupe::actors
