#include "actors/server/caller_connection.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "actors/bulk/bulk_session.h"
#include "actors/core/session/flow_control.h"
#include "actors/server/call_server.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kPeerReadBytes = 256u << 10;
constexpr std::size_t kPeerReadSpaceMin = 32u << 10;
constexpr std::size_t kLookAheadMax = 64u << 20;  // a caller keeps less than that under way
constexpr int kPeerSignalSliceMs = 1000;          // EINTR is the rule

/// The word on a call that a control frame is; none of another one, nor of one that cannot be read,
/// which is refused when its turn comes.
std::optional<CallControl> WordIn(std::string_view bytes, const CallLimits& limits) {
  Frame frame;
  std::string ignored;
  if (ParseFrame(bytes, limits, &frame, &ignored) != ParseOutcome::kFrame) return std::nullopt;
  const StatusOr<CallControl> control = ParseControl(frame);
  if (!control.ok()) return std::nullopt;
  if (control->kind != ControlKind::kTaken && control->kind != ControlKind::kCancel)
    return std::nullopt;
  return *control;
}

}  // namespace

CallerConnection::CallerConnection(CallStream stream, std::uint64_t id, int epoll_fd, int wake_fd)
    : stream_(std::move(stream)),
      watched_{id, epoll_fd, wake_fd},
      away_(stream_.away()),
      identity_(stream_.identity()) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = watched_.id;
  if (::epoll_ctl(watched_.epoll_fd, EPOLL_CTL_ADD, stream_.fd(), &event) != 0)
    state_ = State::kClosed;
}

CallerConnection::~CallerConnection() = default;

void CallerConnection::WatchLocked() {
  epoll_event event{};
  event.events = (paused() ? 0u : static_cast<unsigned>(EPOLLIN)) |
                 (write_armed_ ? static_cast<unsigned>(EPOLLOUT) : 0u);
  event.data.u64 = watched_.id;
  ::epoll_ctl(watched_.epoll_fd, EPOLL_CTL_MOD, stream_.fd(), &event);
}

void CallerConnection::Pause(bool paused) {
  if (paused_.load(std::memory_order_relaxed) == paused) return;
  const MutexLock lock(mutex_);
  paused_.store(paused);
  if (state_ == State::kOpen) WatchLocked();
}

std::size_t CallerConnection::Reply(std::uint64_t sequence, std::uint16_t flags,
                                    ByteBuffer& frame) {
  const MutexLock lock(mutex_);
  if (state_ == State::kClosed) return 0;
  calls_.Reply(frame, flags, sequence);
  if ((flags & kFlagObjects) != 0) NoteResultLocked(sequence);
  return calls_.window().unsent_bytes();
}

void CallerConnection::Keep(std::uint64_t sequence, std::shared_ptr<ResultHold> hold) {
  const MutexLock lock(mutex_);
  if (state_ != State::kClosed) kept_results_.push_back({sequence, 0, std::move(hold)});
}

/// The reply is this frame; those that were acknowledged need no care any more.
void CallerConnection::NoteResultLocked(std::uint64_t sequence) {
  const SendWindow& window = calls_.window();
  for (KeptResult& kept : kept_results_) {
    if (kept.frame == 0 && kept.sequence == sequence) kept.frame = window.appended();
    if (kept.frame != 0 && kept.frame <= window.released()) kept.hold->Delivered();
  }
  std::erase_if(kept_results_, [&window](const KeptResult& kept) {
    return kept.frame != 0 && kept.frame <= window.released();
  });
}

void CallerConnection::ReplyDeferred(std::uint64_t sequence, std::uint16_t flags, ByteBuffer& frame,
                                     bool flush) {
  Reply(sequence, flags, frame);
  if (flush) Flush();
  running_.fetch_sub(1);
  if (!paused()) return;
  const MutexLock lock(mutex_);
  if (state_ == State::kOpen) WakeLocked();
}

void CallerConnection::WakeLocked() {
  const std::uint64_t one = 1;
  (void)!::write(watched_.wake_fd, &one, sizeof one);
}

void CallerConnection::Flush() {
  const MutexLock lock(mutex_);
  if (state_ == State::kOpen) FlushLocked();
}

void CallerConnection::FlushLocked() {
  if (broken_) return;
  SendWindow& window = calls_.window();
  while (true) {
    const std::string_view unsent = window.Unsent();
    if (unsent.empty() && !stream_.HasUnsent()) break;
    const IoResult wrote = stream_.TryWrite(unsent.data(), unsent.size());
    if (wrote.outcome == IoOutcome::kEnded) {
      broken_ = true;  // the serving thread reads the end
      break;
    }
    if (wrote.outcome == IoOutcome::kWouldBlock) {
      if (!std::exchange(write_armed_, true)) WatchLocked();
      return;
    }
    window.Sent(wrote.bytes);
  }
  if (std::exchange(write_armed_, false)) WatchLocked();
  if (paused()) WakeLocked();
}

std::size_t CallerConnection::Unsent() {
  const MutexLock lock(mutex_);
  return broken_ ? 0 : calls_.window().unsent_bytes();
}

std::size_t CallerConnection::KeptBytes() {
  const MutexLock lock(mutex_);
  return calls_.window().kept_bytes();
}

bool CallerConnection::TakeCall(const Frame& frame) {
  if (!calls_.TakeCall(frame.head.sequence, frame.head.ack, frame.bytes)) return false;
  if (calls_.AckDue()) {
    calls_.Told();
    const MutexLock lock(mutex_);
    calls_.AppendControl(ControlKind::kAck);
    if (state_ == State::kOpen) FlushLocked();
  }
  return true;
}

bool CallerConnection::Acknowledge(std::uint64_t replies) {
  const MutexLock lock(mutex_);
  return calls_.Acknowledge(replies);
}

std::shared_ptr<BulkSession> CallerConnection::Bulk() {
  const MutexLock lock(mutex_);
  if (bulk_session_ == nullptr && crosses_ && away_ && !process.IsNil() &&
      state_ != State::kClosed) {
    bulk_session_ = BulkSession::Actor(*crosses_, identity_);
  }
  return bulk_session_;
}

void CallerConnection::Unpark() {
  parked_.store(false);
  const MutexLock lock(mutex_);
  if (state_ == State::kOpen) WakeLocked();
}

void CallerConnection::Welcome(const SessionId& id) {
  session_id = id;
  const MutexLock lock(mutex_);
  crosses_ = id;
  calls_.AppendControl(ControlKind::kWelcome);
}

void CallerConnection::Detach() {
  in_.Clear();  // calls that were not taken yet will be sent again
  words_ = {};
  in_.Shrink(0);
  const MutexLock lock(mutex_);
  if (state_ != State::kOpen) return;
  state_ = State::kDetached;
  paused_.store(false);
  parked_.store(false);
  if (bulk_session_ != nullptr) bulk_session_->Attached(false);
  write_armed_ = false;
  calls_.Disconnected();
  ::epoll_ctl(watched_.epoll_fd, EPOLL_CTL_DEL, stream_.fd(), nullptr);
  stream_.Shutdown();
  stream_ = CallStream();  // the descriptor is not kept for a caller that may never come
}

bool CallerConnection::Resume(CallerConnection& other, std::uint64_t replies) {
  Detach();
  const MutexLock lock(mutex_);  // only this thread ever takes two of them
  const MutexLock other_lock(other.mutex_);
  if (state_ != State::kDetached || other.state_ != State::kOpen) return false;
  if (calls_.Resume(replies) != SendWindow::Rewound::kOk) return false;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = watched_.id;
  if (::epoll_ctl(watched_.epoll_fd, EPOLL_CTL_MOD, other.stream_.fd(), &event) != 0) return false;
  stream_ = std::move(other.stream_);
  other.state_ = State::kClosed;
  state_ = State::kOpen;
  broken_ = false;
  if (bulk_session_ != nullptr) bulk_session_->Attached(true);
  FlushLocked();
  return true;
}

IoResult CallerConnection::Read(const CallLimits& limits) {
  if (in_.spare() < kPeerReadSpaceMin) {
    // Memory follows what has arrived, doubling, never what a header promises.
    in_.Reserve(
        std::max(kPeerReadBytes, std::min<std::size_t>(in_.size(), limits.frame_bytes_max)));
  }
  const IoResult got = stream_.TryRead(in_.tail(), in_.spare());
  if (got.outcome == IoOutcome::kProgress) in_.Commit(got.bytes);
  return got;
}

void CallerConnection::ScanControls(const CallLimits& limits) {
  if (session == nullptr) return;
  // From head to head: what is no control frame is looked at when its turn comes.
  std::uint64_t word = words_.taken;
  const char* at = in_.data();
  std::size_t left = in_.size();
  while (left >= kFrameHeadBytes) {
    std::uint64_t head;
    std::uint32_t body;
    std::memcpy(&head, at, sizeof head);
    std::memcpy(&body, at + 8, sizeof body);
    const std::size_t bytes = kFrameHeadBytes + (head >> 48) * 8 + body;
    if (bytes > left) return;
    if ((head >> 32 & 0xFFFF) == kFlagControl) {
      const std::optional<CallControl> control = WordIn({at, bytes}, limits);
      if (control && word++ == words_.told) {
        ++words_.told;  // before: what hears of it may look ahead itself
        TellSession(*control);
      }
    }
    at += bytes;
    left -= bytes;
  }
}

void CallerConnection::TakeWord(const CallControl& control, std::size_t bytes) {
  if (words_.taken == words_.told) {
    ++words_.told;
    TellSession(control);
  }
  in_.Consume(bytes);
  ++words_.taken;
}

void CallerConnection::TellSession(const CallControl& control) {
  if (session == nullptr) return;
  if (control.kind == ControlKind::kTaken) session->Taken(control.sequence, control.count);
  if (control.kind == ControlKind::kCancel) session->Cancel(control.sequence, control.count != 0);
}

CallerConnection::Looked CallerConnection::LookAhead(const CallLimits& limits, WaitHost* host) {
  IoResult got;
  const std::uint64_t heard = heard_;
  while ((got = Read(limits)).outcome == IoOutcome::kWouldBlock && host != nullptr) {
    Flush();
    pollfd watched{stream_.fd(), POLLIN, 0};
    {
      const MutexLock lock(mutex_);
      if (write_armed_) watched.events |= POLLOUT;
    }
    host->Suspend();
    ::poll(&watched, 1, host->HandlesSignals() ? kPeerSignalSliceMs : -1);
    host->Resume();
    if (host->Interrupted()) return Looked::kInterrupted;
    // The connection has been read meanwhile, and nothing may come after those bytes
    if (heard_ != heard) return Looked::kOn;
  }
  if (got.outcome == IoOutcome::kEnded || in_.size() > kLookAheadMax) return Looked::kEnded;
  if (got.outcome == IoOutcome::kProgress) {
    ++heard_;
    ScanControls(limits);
  }
  return Looked::kOn;
}

void CallerConnection::Goodbye(std::string_view why) {
  ByteBuffer frame;
  frame.Extend(kFrameHeadBytes);
  AppendRuntimeError(frame, ErrorCode::kInvalid, why);
  Reply(0, kFlagReply | kFlagGoodbye, frame);
  Flush();
  Close();
}

void CallerConnection::EndSession() {
  {
    const MutexLock lock(mutex_);
    if (session_id && state_ == State::kOpen) calls_.AppendControl(ControlKind::kEnd);
  }
  Flush();
  Close();
}

void CallerConnection::Close() {
  const MutexLock lock(mutex_);
  if (state_ == State::kClosed) return;
  if (state_ == State::kOpen) {
    ::epoll_ctl(watched_.epoll_fd, EPOLL_CTL_DEL, stream_.fd(), nullptr);
    stream_.Shutdown();
  }
  state_ = State::kClosed;
  const SendWindow& window = calls_.window();
  for (const KeptResult& kept : kept_results_) {
    if (kept.frame != 0 && kept.frame <= window.released()) kept.hold->Delivered();
  }
  kept_results_.clear();
  if (bulk_session_ != nullptr) bulk_session_->End("the session of its caller is over");
  calls_.window().Clear();
}

}  // namespace troupe::actors
