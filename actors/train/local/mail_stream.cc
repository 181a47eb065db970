#include "actors/train/local/mail_stream.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

namespace troupe::train {
namespace {

std::size_t BoxBytes(std::size_t bytes) { return sizeof(Mailbox) + (bytes + 63) / 64 * 64; }

}  // namespace

MailStream::MailStream(UniqueFd fd, std::size_t mailbox_bytes, Waker& waker,
                       std::function<void()> changed)
    : fd_(std::move(fd)), bytes_(mailbox_bytes), waker_(waker), changed_(std::move(changed)) {
  memory_ = mmap(nullptr, 2 * BoxBytes(bytes_), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
  in_ = static_cast<Mailbox*>(memory_);  // zero is how its atomics begin
  out_ = reinterpret_cast<Mailbox*>(static_cast<std::byte*>(memory_) + BoxBytes(bytes_));
}

MailStream::~MailStream() { munmap(memory_, 2 * BoxBytes(bytes_)); }

void MailStream::Ring() {
  begun_.store(true);
  waker_.Wake();
}

short MailStream::Wants() {
  MutexLock lock(mutex_);
  if (!begun_.load() || ended_.load()) return 0;  // no rank that sends none pays for it
  short wants = 0;
  if (out_->written.load() != out_->read.load()) wants |= POLLOUT;
  if (in_->written.load() - in_->read.load() < bytes_) wants |= POLLIN;
  return wants;
}

void MailStream::Move() {
  MutexLock lock(mutex_);
  if (ended_.load()) return;
  const bool out = MoveOut(), in = MoveIn();
  if (out || in) changed_();
}

bool MailStream::MoveOut() {
  bool moved = false;
  for (;;) {
    const std::uint64_t read = out_->read.load();
    const auto there = static_cast<std::size_t>(out_->written.load() - read);
    const std::size_t at = read % bytes_, some = std::min(there, bytes_ - at);
    if (some == 0) return moved;
    const ssize_t sent = send(fd_.get(), out_->bytes + at, some, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return moved;
    if (sent < 0) {
      // Earlier bytes are still read, until they end too; nobody takes these.
      out_->read.store(out_->written.load());
      return true;
    }
    out_->read.store(read + static_cast<std::uint64_t>(sent));
    moved = true;
  }
}

bool MailStream::MoveIn() {
  bool moved = false;
  for (;;) {
    const std::uint64_t written = in_->written.load();
    const std::size_t room = bytes_ - static_cast<std::size_t>(written - in_->read.load());
    const std::size_t at = written % bytes_, some = std::min(room, bytes_ - at);
    if (some == 0) return moved;
    const ssize_t got = recv(fd_.get(), in_->bytes + at, some, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return moved;
    if (got <= 0) {
      ended_.store(true);
      return true;
    }
    in_->written.store(written + static_cast<std::uint64_t>(got));
    moved = true;
  }
}

void MailStream::End() {
  MutexLock lock(mutex_);
  ended_.store(true);
  shutdown(fd_.get(), SHUT_WR);
  changed_();
}

}  // namespace troupe::train
