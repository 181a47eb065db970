#include "actors/net/tls_pipe.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>

namespace troupe::actors {
namespace {

constexpr std::size_t kScratchBytes = 256u << 10;
// Most bytes taken from a caller at a time: bounds the bytes that are encrypted and then not sent.
constexpr std::size_t kTakenBytes = 64u << 10;

/// Ciphertext on its way between the socket and the session, of whichever connection.
char* SealedScratch() {
  static thread_local const std::unique_ptr<char[]> scratch(new char[kScratchBytes]);
  return scratch.get();
}

}  // namespace

IoResult TlsPipe::Broken(const Status& why) {
  problem_ = MessageOf(why);
  return {IoOutcome::kEnded, 0, kTlsBroken};
}

IoResult TlsPipe::Read(int fd, char* into, std::size_t bytes) {
  std::size_t got = 0;
  if (maybe_buffered_) {
    maybe_buffered_ = false;
    const MutexLock lock(mutex_);
    const StatusOr<std::size_t> plain = engine_->Read(into, bytes);
    if (!plain.ok()) return Broken(plain.status());
    if (*plain != 0) {
      maybe_buffered_ = true;
      return {IoOutcome::kProgress, *plain, 0};
    }
  }
  const std::size_t most = bytes > kRecordBytesMax ? bytes - kRecordBytesMax : 1;
  char* scratch = SealedScratch();
  const ssize_t n = ::recv(fd, scratch, std::min(kScratchBytes, most), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return {};
  if (n < 0) return {IoOutcome::kEnded, 0, errno};
  if (n == 0) return {IoOutcome::kEnded, 0, 0};
  const MutexLock lock(mutex_);
  const Status fed = engine_->Feed(std::string_view(scratch, static_cast<std::size_t>(n)));
  if (!fed.ok()) return Broken(fed);
  while (got < bytes) {
    const StatusOr<std::size_t> plain = engine_->Read(into + got, bytes - got);
    if (!plain.ok())
      return got != 0 ? IoResult{IoOutcome::kProgress, got, 0} : Broken(plain.status());
    if (*plain == 0) break;
    got += *plain;
  }
  if (got == bytes) maybe_buffered_ = true;
  if (engine_->HasOutgoing()) Send(fd);  // an answer of the session's own, such as a key update
  if (got != 0) return {IoOutcome::kProgress, got, 0};
  return engine_->closed() ? IoResult{IoOutcome::kEnded, 0, 0} : IoResult{};
}

IoResult TlsPipe::Write(int fd, const char* from, std::size_t bytes) {
  const MutexLock lock(mutex_);
  if (!unsent_.empty()) {
    const IoResult sent = Send(fd);
    if (sent.outcome != IoOutcome::kProgress || !unsent_.empty()) return sent;
  }
  if (bytes == 0) return {IoOutcome::kProgress, 0, 0};
  const std::size_t taken = std::min(bytes, kTakenBytes);
  const Status written = engine_->Write(std::string_view(from, taken));
  if (!written.ok()) return Broken(written);
  const IoResult sent = Send(fd);
  if (sent.outcome == IoOutcome::kEnded) return sent;
  return {IoOutcome::kProgress, taken, 0};
}

/// kProgress: all that was there has been sent.
IoResult TlsPipe::Send(int fd) {
  char* scratch = SealedScratch();
  while (true) {
    const char* from = unsent_.data();
    std::size_t size = unsent_.size();
    if (size == 0) {
      size = engine_->TakeOutgoing(scratch, kScratchBytes);
      from = scratch;
    }
    if (size == 0) return {IoOutcome::kProgress, 0, 0};
    const ssize_t n = ::send(fd, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    const bool full = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (n < 0 && !full) return {IoOutcome::kEnded, 0, errno};
    const std::size_t sent = full ? 0 : static_cast<std::size_t>(n);
    if (from == scratch) {
      unsent_.assign(scratch + sent, size - sent);
    } else {
      unsent_.erase(0, sent);
    }
    if (full) return {};
  }
}

bool TlsPipe::HasUnsent() {
  const MutexLock lock(mutex_);
  return !unsent_.empty() || engine_->HasOutgoing();
}

std::string TlsPipe::WhyEnded(int error) {
  if (watch_->lost()) return "what was sent there has not been answered for 5 s";
  if (error > 0) return strerror(error);
  if (error == 0) return "the other side closed it";
  const MutexLock lock(mutex_);
  return problem_;
}

}  // namespace troupe::actors
