#include "actors/caller/channel_stream.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace troupe::actors {
namespace {

constexpr std::size_t kReadBytes = 256u << 10;
constexpr std::size_t kReadSpaceMin = 32u << 10;

/// How much room the next read is given. Memory follows what has arrived: a header alone cannot
/// make this side allocate 16 MiB.
std::size_t RoomToRead(const ByteBuffer& in, const CallLimits& limits) {
  Frame frame;
  std::string ignored;
  const ParseOutcome outcome = ParseFrame(in.view(), limits, &frame, &ignored);
  if (outcome != ParseOutcome::kNeedMore || frame.bytes <= in.size()) return kReadBytes;
  return std::min(std::max(kReadBytes, frame.bytes - in.size()), std::max(kReadBytes, in.size()));
}

}  // namespace

void ChannelStream::Lose() {
  attached_.store(false);
  stream_ = CallStream();
  in_.Clear();
}

ChannelStream::Wrote ChannelStream::Write(SendWindow& window) {
  Wrote wrote;
  while (!broken_) {
    const std::string_view unsent = window.Unsent();
    if (unsent.empty() && !stream_.HasUnsent()) break;
    const IoResult took = stream_.TryWrite(unsent.data(), unsent.size());
    broken_ = took.outcome == IoOutcome::kEnded;
    wrote.blocked = took.outcome == IoOutcome::kWouldBlock;
    if (broken_ || wrote.blocked) break;
    window.Sent(took.bytes);
    wrote.any = true;
  }
  return wrote;
}

IoResult ChannelStream::Read(const CallLimits& limits) {
  if (in_.spare() < kReadSpaceMin) in_.Reserve(RoomToRead(in_, limits));
  const IoResult got = stream_.TryRead(in_.tail(), in_.spare());
  if (got.outcome == IoOutcome::kProgress) in_.Commit(got.bytes);
  return got;
}

void ChannelStream::Used(std::size_t bytes) {
  in_.Consume(bytes);
  in_.Shrink(4 * kReadBytes);
}

}  // namespace troupe::actors
