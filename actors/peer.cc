#include "actors/peer.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "actors/call_server.h"
#include "actors/flow_control.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kReadBytes = 256u << 10;
constexpr std::size_t kReadSpaceMin = 32u << 10;

}  // namespace

Peer::Peer(CallStream stream, std::uint64_t id, int epoll_fd, int wake_fd)
    : stream_(std::move(stream)), id_(id), epoll_fd_(epoll_fd), wake_fd_(wake_fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id_;
  if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, stream_.fd(), &event) != 0) open_ = false;
}

Peer::~Peer() = default;

void Peer::WatchLocked() {
  epoll_event event{};
  event.events = (paused() ? 0u : static_cast<unsigned>(EPOLLIN)) |
                 (write_armed_ ? static_cast<unsigned>(EPOLLOUT) : 0u);
  event.data.u64 = id_;
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, stream_.fd(), &event);
}

void Peer::Pause(bool paused) {
  if (paused_.load(std::memory_order_relaxed) == paused) return;
  std::lock_guard lock(mutex_);
  paused_.store(paused);
  if (open_) WatchLocked();
}

std::size_t Peer::Reply(std::uint64_t sequence, std::uint16_t flags, ByteBuffer& frame) {
  std::lock_guard lock(mutex_);
  if (!open_) return 0;
  acked_ = std::max(acked_, sequence);
  SealFrame(frame, flags, sequence, acked_);
  out_.Append(frame.data(), frame.size());
  return out_.size();
}

void Peer::ReplyDeferred(std::uint64_t sequence, std::uint16_t flags, ByteBuffer& frame) {
  Reply(sequence, flags, frame);
  Flush();
  running_.fetch_sub(1);
  if (!paused()) return;
  std::lock_guard lock(mutex_);
  if (open_) WakeLocked();
}

void Peer::WakeLocked() {
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
}

void Peer::Flush() {
  std::lock_guard lock(mutex_);
  if (open_) FlushLocked();
}

void Peer::FlushLocked() {
  while (!out_.empty() || stream_.HasUnsent()) {
    const IoResult wrote = stream_.TryWrite(out_.data(), out_.size());
    if (wrote.outcome == IoOutcome::kEnded) {
      out_.Clear();  // the serving thread reads the end and closes
      break;
    }
    if (wrote.outcome == IoOutcome::kWouldBlock) {
      if (!std::exchange(write_armed_, true)) WatchLocked();
      return;
    }
    out_.Consume(wrote.bytes);
  }
  if (std::exchange(write_armed_, false)) WatchLocked();
  out_.Shrink(ActorFlow::kRepliesMax);
  if (paused()) WakeLocked();
}

std::size_t Peer::Unsent() {
  std::lock_guard lock(mutex_);
  return out_.size();
}

IoResult Peer::Read(const CallLimits& limits) {
  if (in_.spare() < kReadSpaceMin) {
    // Memory follows what has arrived, doubling, never what a header promises.
    in_.Reserve(std::max(kReadBytes, std::min<std::size_t>(in_.size(), limits.frame_bytes_max)));
  }
  const IoResult got = stream_.TryRead(in_.tail(), in_.spare());
  if (got.outcome == IoOutcome::kProgress) in_.Commit(got.bytes);
  return got;
}

void Peer::Goodbye(std::string_view why) {
  ByteBuffer frame;
  frame.Extend(kFrameHeadBytes);
  AppendRuntimeError(frame, ErrorCode::kInvalid, why);
  Reply(0, kFlagReply | kFlagGoodbye, frame);
  Flush();
  Close();
}

void Peer::Close() {
  std::lock_guard lock(mutex_);
  if (!std::exchange(open_, false)) return;
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, stream_.fd(), nullptr);
  stream_.Shutdown();
  out_.Clear();
}

}  // namespace troupe::actors
