#include "actors/train/local/part_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "actors/train/local/collectives.h"

namespace troupe::train {
namespace {

constexpr std::size_t kPartsOfAWrite = 8;
// Bytes of a large part taken at once: each waking of a thread costs as much as copying that many.
constexpr std::size_t kWakeBytesMax = 256 << 10;

std::size_t WholeOf(const PartNote& note) {
  return sizeof(PartNote) + static_cast<std::size_t>(note.bytes);
}

bool SamePart(const PartNote& a, const PartNote& b) {
  return SameWork(a.work, b.work) && a.stage == b.stage && a.bytes == b.bytes && a.zero == b.zero;
}

/// Returns the rest of a part as a note and bytes, and the number of the two.
std::size_t Rest(std::size_t moved, PartNote* note, std::byte* memory, std::size_t bytes,
                 iovec* into) {
  std::size_t count = 0;
  if (moved < sizeof(PartNote))
    into[count++] = {reinterpret_cast<std::byte*>(note) + moved, sizeof(PartNote) - moved};
  const std::size_t of_bytes = moved < sizeof(PartNote) ? 0 : moved - sizeof(PartNote);
  if (of_bytes < bytes) into[count++] = {memory + of_bytes, bytes - of_bytes};
  return count;
}

}  // namespace

PartStream::Ticket PartStream::Send(const PartNote& note, const void* from) {
  MutexLock lock(mutex_);
  const Ticket ticket = ++sends_;
  if (closed_) {
    sent_.store(ticket);
    return ticket;
  }
  // Bytes are only read from what is sent.
  out_.push_back({note, static_cast<std::byte*>(const_cast<void*>(from))});
  if (out_.size() == 1) MoveOut();
  if (waker_ && !out_.empty() && (polled_ & POLLOUT) == 0) waker_->Wake();
  return ticket;
}

PartStream::Ticket PartStream::Receive(const PartNote& expected, void* to) {
  MutexLock lock(mutex_);
  const Ticket ticket = ++receives_;
  if (closed_ || ended_.load()) return ticket;
  in_.push_back({expected, static_cast<std::byte*>(to)});
  if (in_.size() == 1) MoveIn();
  if (waker_ && !in_.empty() && (polled_ & POLLIN) == 0) waker_->Wake();
  return ticket;
}

std::optional<PartNote> PartStream::other() const {
  MutexLock lock(mutex_);
  return other_;
}

short PartStream::Wants() {
  MutexLock lock(mutex_);
  polled_ = 0;
  if (!out_.empty()) polled_ |= POLLOUT;
  if (!in_.empty() && !ended_.load()) {
    polled_ |= POLLIN;
    WakeAt(std::min(WholeOf(in_.front().note) - in_.front().moved, kWakeBytesMax));
  }
  return polled_;
}

void PartStream::WakeAt(std::size_t bytes) {
  if (bytes == wakes_at_) return;
  wakes_at_ = bytes;
  const int least = static_cast<int>(bytes);
  setsockopt(fd_.get(), SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}

void PartStream::Move() {
  MutexLock lock(mutex_);
  MoveOut();
  MoveIn();
}

void PartStream::MoveOut() {
  bool is_done = false;
  while (!out_.empty()) {
    iovec vectors[2 * kPartsOfAWrite];
    std::size_t count = 0;
    for (std::size_t i = 0; i < std::min(out_.size(), kPartsOfAWrite); ++i) {
      Part& part = out_[i];
      count += Rest(part.moved, &part.note, part.memory, part.note.bytes, vectors + count);
    }
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = count;
    ssize_t sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) {  // WI2
      out_.clear();
      sent_.store(sends_);
      is_done = true;
      break;
    }
    while (sent > 0) {
      Part& part = out_.front();
      const auto some =
          std::min<ssize_t>(sent, static_cast<ssize_t>(WholeOf(part.note) - part.moved));
      part.moved += static_cast<std::size_t>(some);
      sent -= some;
      if (part.moved < WholeOf(part.note)) break;
      out_.pop_front();
      sent_.fetch_add(1);
      is_done = true;
    }
  }
  if (is_done) changed_();
}

bool PartStream::Took(std::size_t bytes) {
  Part& part = in_.front();
  const bool had_note = part.moved >= sizeof(PartNote);
  part.moved += bytes;
  if (!had_note && part.moved >= sizeof(PartNote) && !SamePart(heard_, part.note)) {  // WI1
    other_ = heard_;
    in_.clear();
    ended_.store(true);
    return true;
  }
  if (part.moved < WholeOf(part.note)) return false;
  in_.pop_front();
  received_.fetch_add(1);
  return true;
}

void PartStream::MoveIn() {
  bool is_done = false;
  while (!in_.empty()) {
    Part& part = in_.front();
    iovec vectors[2];
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = Rest(part.moved, &heard_, part.memory, part.note.bytes, vectors);
    const ssize_t got = recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      in_.clear();
      ended_.store(true);
      is_done = true;
      break;
    }
    is_done = Took(static_cast<std::size_t>(got)) || is_done;
  }
  if (is_done) changed_();
}

void PartStream::End() {
  MutexLock lock(mutex_);
  out_.clear();
  in_.clear();
  closed_ = true;
  sent_.store(sends_);
  ended_.store(true);
  shutdown(fd_.get(), SHUT_RDWR);  // wakes the waiting thread
  changed_();
}

}  // namespace troupe::train
