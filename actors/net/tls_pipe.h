// An established TLS session over a non-blocking socket that this object does not own: what a call
// connection between hosts reads and writes through.
//
// Encryption happens in the thread that reads or writes, between its own recv or send and the
// frame: no other thread, one record run per flush. One thread reads at a time, any thread may
// write; the session itself is under a mutex, which the one does not hold while it receives. Never
// blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "actors/core/call/io_result.h"
#include "actors/net/stall_watch.h"
#include "runtime/base/mutex.h"
#include "runtime/net/tls_engine.h"

namespace troupe::actors {

class TlsPipe {
 public:
  /// Bytes one Read may need beyond those it was asked for: a record that lay there incomplete.
  static constexpr std::size_t kRecordBytesMax = 17u << 10;

  /// `engine` is established over `fd`, which must outlive the pipe and is watched
  /// (stall_policy.h).
  TlsPipe(int fd, std::unique_ptr<net::TlsEngine> engine)
      : watch_(StallWatch::Begin(fd)), engine_(std::move(engine)) {}
  ~TlsPipe() { watch_->End(); }
  TlsPipe(const TlsPipe&) = delete;
  TlsPipe& operator=(const TlsPipe&) = delete;

  /// `bytes` must exceed kRecordBytesMax: then all that was received is handed out at once, and
  /// nothing is left that the socket's readiness would not tell of.
  IoResult Read(int fd, char* into, std::size_t bytes);
  /// Takes some of `bytes`, or kWouldBlock; with none, sends on what was taken before.
  IoResult Write(int fd, const char* from, std::size_t bytes);
  /// Returns true if it holds bytes that the socket has not taken yet.
  bool HasUnsent();
  /// Words for an end with this IoResult::error.
  std::string WhyEnded(int error);

 private:
  IoResult Send(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  IoResult Broken(const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<StallWatch> watch_;
  Mutex mutex_;
  std::unique_ptr<net::TlsEngine> engine_ ABSL_GUARDED_BY(mutex_);
  std::string unsent_ ABSL_GUARDED_BY(mutex_);  // ciphertext that the socket did not take
  std::string problem_ ABSL_GUARDED_BY(mutex_);
  /// The reading thread's: the handshake's last read may have brought more.
  bool maybe_buffered_ = true;
};

}  // namespace troupe::actors
